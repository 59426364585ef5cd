//! Reads the programs of a study: the dataset's command, services and contenders.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeTable;

use super::collector::collector;
use super::complaint::Complaint;
use super::container::container;
use super::fields::Fields;
use super::keys;
use super::model::{Contender, Dataset, Need, NeedKind, Service};
use super::services::ending;
use super::values;
use super::words::shown;

/// The study's name. Default: the name of its folder.
pub(super) fn study_name(fields: &Fields<'_, '_>) -> String {
    if let Some(name) = fields.text("name") {
        values::name(fields.reading(), &name);
        if name.get_ref().is_empty() || name.get_ref().contains('/') {
            let title = "the study's name becomes a part of file names: it cannot be empty or contain `/`";
            fields.complain(Complaint::new(name.span(), title, "this name"));
        }
        return name.into_inner();
    }
    let folder = fields.reading().folder().file_name();
    folder.map_or_else(|| "study".into(), |name| shown(&name.to_string_lossy()))
}

pub(super) fn dataset(fields: &Fields<'_, '_>) -> Dataset {
    let reading = fields.reading();
    let inputs = fields.texts("inputs").unwrap_or_default();
    let output = fields.required_text("output", "output = \"data.sqlite\"");
    let plain =
        Path::new(output.get_ref()).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !plain {
        let title = "`output` of [dataset] must be a file name inside the study's work folder";
        let complaint = Complaint::new(output.span(), title, "this leads elsewhere");
        reading.complain(
            complaint.help("for example: output = \"data.sqlite\"; contenders get its path as {dataset}"),
        );
    }
    Dataset {
        command: fields.required_text("command", "command = \"python3 make.py {output}\""),
        inputs: inputs.iter().map(|input| reading.path(input, "file", Path::is_file)).collect(),
        output,
        tmpfs: fields.flag("tmpfs").is_some_and(Spanned::into_inner),
    }
}

pub(super) fn service(fields: &Fields<'_, '_>) -> Service {
    let name = fields.required_text("name", "name = \"db\"");
    values::name(fields.reading(), &name);
    values::service_name(fields.reading(), &name);
    Service {
        name,
        command: fields.required_text("command", "command = \"redis-server --port {port}\""),
        folder: folder(fields),
        env: env(fields),
        listen: values::listen(fields),
        ready: fields.text("ready"),
        reset: fields.text("reset"),
        ending: ending(fields),
    }
}

pub(super) fn contender(fields: &Fields<'_, '_>) -> Contender {
    let given = fields.text("name");
    let contained = container(fields, given.as_ref().map(|name| name.get_ref().as_str()));
    let usual = fields.text("image").or_else(|| fields.text("containerfile"));
    let (command, image_build, image, engine) = match contained {
        Some(one) => (one.command, one.build, one.image, Some(one.need)),
        None => (fields.required_text("command", "command = \"node server.mjs\""), None, None, None),
    };
    let name = given.unwrap_or_else(|| {
        let named = usual.as_ref().unwrap_or(&command);
        Spanned::new(named.span(), default_name(named.get_ref()))
    });
    values::name(fields.reading(), &name);
    if name.get_ref().is_empty() && !command.get_ref().is_empty() {
        let complaint = Complaint::new(name.span(), "a contender's name cannot be empty", "no name here");
        fields.complain(complaint.help("leave `name` out to call it after its program"));
    }
    Contender {
        name,
        command,
        folder: folder(fields),
        env: env(fields),
        needs: needs(fields).into_iter().chain(engine).collect(),
        version: fields.text("version"),
        build: build(fields.text("build"), image_build),
        image,
        services: fields.texts("services").unwrap_or_default(),
        measures: measures(fields),
        artefacts: artefacts(fields),
        collector: collector(fields),
        plain_http_only: fields.flag("tls").is_some_and(|tls| !tls.into_inner()),
        revision: None,
        listen: values::listen(fields),
    }
}

/// The contender's own build, then that of its image, which may contain what the first one makes.
fn build(own: Option<Spanned<String>>, image: Option<Spanned<String>>) -> Option<Spanned<String>> {
    match (own, image) {
        (Some(own), Some(image)) => {
            // On lines of its own, a comment at the end of the first command hides nothing of the second.
            let both = format!("(\n{}\n) && {}", own.get_ref(), image.get_ref());
            Some(Spanned::new(own.span(), both))
        }
        (own, image) => own.or(image),
    }
}

/// Reads `measures = { serialize = "node measure.mjs" }`.
fn measures(fields: &Fields<'_, '_>) -> std::collections::BTreeMap<String, Spanned<String>> {
    let map = fields.text_map("measures", false);
    for (name, command) in &map {
        values::name(fields.reading(), name);
        if name.get_ref().is_empty() || command.get_ref().trim().is_empty() {
            let title = "an entry of `measures` needs a name and a command";
            let complaint = Complaint::new(command.span(), title, "one of them is empty");
            fields.complain(complaint.help("for example: measures = { serialize = \"node measure.mjs\" }"));
        }
    }
    map.into_iter().map(|(name, command)| (name.into_inner(), command)).collect()
}

/// Reads `artefact = "dist"` or a list of paths. The paths need not exist yet, because the build may create them.
fn artefacts(fields: &Fields<'_, '_>) -> Vec<PathBuf> {
    let one = fields.get("artefact").is_some_and(|value| value.get_ref().is_str());
    let all = if one {
        fields.text("artefact").into_iter().collect()
    } else {
        fields.texts("artefact").unwrap_or_default()
    };
    let folder = fields.reading().folder();
    all.into_iter().map(|path| folder.join(path.get_ref()).components().collect()).collect()
}

/// The default name of a contender: the file name of the first word of its command that is neither `exec`, `env` nor an assignment.
pub(crate) fn default_name(command: &str) -> String {
    let assignment = |word: &str| word.split_once('=').is_some_and(|(name, _)| is_variable(name));
    let program =
        command.split_whitespace().find(|word| !matches!(*word, "exec" | "env") && !assignment(word));
    let word = program.unwrap_or(command).trim_matches(['"', '\'']);
    word.rsplit('/')
        .next()
        .unwrap_or(word)
        .replace(',', " ")
        .chars()
        .filter(|c| !c.is_control())
        .take(60)
        .collect()
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

pub(super) fn folder(fields: &Fields<'_, '_>) -> PathBuf {
    let reading = fields.reading();
    match fields.text("folder") {
        Some(folder) => reading.path(&folder, "folder", Path::is_dir),
        None => reading.folder().to_owned(),
    }
}

pub(super) fn env(fields: &Fields<'_, '_>) -> std::collections::BTreeMap<String, Spanned<String>> {
    let env = fields.text_map("env", true);
    for (name, value) in &env {
        if name.get_ref().is_empty() || name.get_ref().contains(['=', '\0']) {
            let title = format!("`{}` is not a valid name of an environment variable", shown(name.get_ref()));
            fields.complain(Complaint::new(name.span(), title, "this name"));
        }
        if value.get_ref().contains('\0') {
            fields.complain(Complaint::new(
                value.span(),
                "an environment variable cannot contain a NUL",
                "this value",
            ));
        }
    }
    env.into_iter().map(|(name, value)| (name.into_inner(), value)).collect()
}

pub(super) fn needs(fields: &Fields<'_, '_>) -> Vec<Need> {
    let expected = "a list such as [{ program = \"bun\", remedy = \"npm ci\" }]";
    let Some(list) = fields.items("needs", expected) else { return Vec::new() };
    let read = |item: &Spanned<toml::de::DeValue<'_>>| {
        let table = item.get_ref().as_table();
        if table.is_none() {
            fields.wrong("needs", expected, item);
        }
        need(fields, table?, item.span())
    };
    list.get_ref().iter().filter_map(read).collect()
}

fn need(parent: &Fields<'_, '_>, table: &DeTable<'_>, span: std::ops::Range<usize>) -> Option<Need> {
    let fields = parent.inner(table, span, &keys::NEED);
    let remedy = fields.text("remedy").map(Spanned::into_inner);
    let (kind, usual) = match (fields.text("file"), fields.text("program")) {
        (Some(file), None) => {
            let path = parent.reading().folder().join(file.get_ref());
            (NeedKind::File(path.components().collect()), format!("make or install `{}`", file.get_ref()))
        }
        (None, Some(program)) => {
            let usual = format!("install `{}` and add its folder to PATH", program.get_ref());
            (NeedKind::Program(program.into_inner()), usual)
        }
        (file, program) => {
            if fields.get("file").is_none() && fields.get("program").is_none()
                || file.is_some() && program.is_some()
            {
                let title = "a need is either a `file` or a `program`";
                let complaint = Complaint::new(fields.span(), title, "one of them is expected here");
                fields.complain(complaint.help("for example: { program = \"bun\", remedy = \"npm ci\" }"));
            }
            return None;
        }
    };
    Some(Need { kind, remedy: remedy.unwrap_or(usual) })
}

#[cfg(test)]
mod tests {
    use super::default_name;

    #[test]
    fn a_contender_is_called_after_its_program() {
        for (command, name) in [
            ("node server.mjs", "node"),
            ("exec node_modules/.bin/bun x.ts", "bun"),
            ("PORT={port} A=1 ./bin/go-server --x", "go-server"),
            ("env A=1 \"/opt/my server\"", "my"),
            ("deno run --allow-net=127.0.0.1:{port} a.ts", "deno"),
            ("A=1", "A=1"),
        ] {
            assert_eq!(default_name(command), name, "{command}");
        }
    }
}
