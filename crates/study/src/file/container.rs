//! Reads a contender that is a container, and turns it into the command that runs it.
//!
//! Owns: the keys of containers, and the words of the command. Must not know: how containers are run and read.

use std::path::Path;

use deadheat_host::command::quoted;
use deadheat_host::process::container::{Engine, option_for_processors};
use sha2::{Digest as _, Sha256};
use toml::Spanned;

use super::complaint::Complaint;
use super::fields::Fields;
use super::limits::{cpus, cpuset, memory};
use super::model::{BuiltImage, Need, NeedKind};
use super::parts::default_name;
use super::words::{nearest, one_of, shown};

/// The keys that only a container has.
const KEYS: [&str; 9] =
    ["containerfile", "pull", "engine", "network", "volumes", "user", "cpus", "cpuset", "memory"];

/// What follows from a contender's `image` or `containerfile`.
pub(super) struct Contained {
    /// The shell command that runs the container in the foreground.
    pub(super) command: Spanned<String>,
    /// The command that makes the image or fetches it, if one of the two is asked for.
    pub(super) build: Option<Spanned<String>>,
    /// The image, if deadheat makes it.
    pub(super) image: Option<BuiltImage>,
    /// The engine's program.
    pub(super) need: Need,
}

/// Reads a container. None if the contender is none. `name` names an image that deadheat builds.
pub(super) fn container(fields: &Fields<'_, '_>, name: Option<&str>) -> Option<Contained> {
    let (image, file) = (fields.text("image"), fields.text("containerfile"));
    let Some(place) = image.as_ref().or(file.as_ref()).map(Spanned::span) else {
        for key in KEYS.into_iter().filter(|key| fields.get(key).is_some()) {
            let title = format!("`{key}` of [[contender]] needs `image` or `containerfile`");
            let complaint = Complaint::new(fields.key_span(key), title, "this has no effect");
            fields.complain(complaint.help("for example: image = \"localhost/mine:1\""));
        }
        return None;
    };
    let engine = engine(fields);
    let built = || {
        let usual = || file.as_ref().map_or_else(String::new, |file| default_name(file.get_ref()));
        // Studies in different folders do not share images.
        let study = fields.reading().folder().file_name().map(|name| tag(&name.to_string_lossy()));
        let name = tag(&name.map_or_else(usual, str::to_owned));
        let words = ["localhost/deadheat".to_owned()].into_iter().chain(study).chain([name]);
        words.collect::<Vec<_>>().join("-")
    };
    let image_name = image.as_ref().map_or_else(built, |image| image.get_ref().clone());
    if image_name.is_empty() || image_name.starts_with('-') || image_name.contains(char::is_whitespace) {
        let title = format!("`{}` is not the name of an image", shown(&image_name));
        fields.complain(Complaint::new(place.clone(), title, "this name"));
    }
    let pull = fields.flag("pull").is_some_and(Spanned::into_inner);
    if let (Some(file), true) = (&file, pull) {
        let complaint = Complaint::new(
            fields.key_span("pull"),
            "`pull` and `containerfile` exclude each other",
            "fetched",
        );
        fields.complain(complaint.also(file.span(), "and built").help("keep one of them"));
    }
    let image = file.as_ref().map(|file| {
        let file = fields.reading().path(file, "file", Path::is_file);
        let path = quoted(&file.to_string_lossy());
        let build = format!("{engine} build --quiet --tag {} --file {path} .", quoted(&image_name));
        BuiltImage { name: image_name.clone(), file, build }
    });
    let build = match &image {
        Some(image) => Some(image.build.clone()),
        None => pull.then(|| format!("{engine} pull --quiet {}", quoted(&image_name))),
    };
    let mut words = vec![format!("exec {engine} run")];
    words.extend(network(fields));
    for volume in fields.texts("volumes").unwrap_or_default() {
        let folder = volume.get_ref().split(':').next().unwrap_or_default();
        if !volume.get_ref().contains(':') || !(folder.starts_with('/') || folder.starts_with('{')) {
            let title = format!("`{}` is not a volume", shown(volume.get_ref()));
            let complaint = Complaint::new(volume.span(), title, "this volume");
            let help = "write an absolute path, or one that begins with a placeholder, and where it is inside: \"{study}/data:/data:ro\"";
            fields.complain(complaint.help(help));
        }
        words.push(format!("--volume={}", quoted(volume.get_ref())));
    }
    words.extend(fields.text("user").map(|user| format!("--user={}", quoted(user.get_ref()))));
    words.extend(cpus(fields).map(|cpus| format!("--cpus={cpus}")));
    words.extend(option_for_processors(&cpuset(fields)));
    words.extend(memory(fields).map(|bytes| format!("--memory={bytes}")));
    words.push(quoted(&image_name));
    words.extend(fields.text("command").map(Spanned::into_inner));
    Some(Contained {
        command: Spanned::new(place.clone(), words.join(" ")),
        build: build.map(|build| Spanned::new(place.clone(), build)),
        image,
        need: Need {
            kind: NeedKind::Program(engine.program().into()),
            remedy: format!("install {engine}, or race without this contender"),
        },
    })
}

fn engine(fields: &Fields<'_, '_>) -> Engine {
    let here = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let has = |engine: &Engine| {
            std::env::split_paths(&path).any(|folder| folder.join(engine.program()).is_file())
        };
        Engine::ALL.into_iter().find(has).unwrap_or(Engine::Podman)
    };
    let Some(word) = fields.text("engine") else { return here() };
    let words = ["podman", "docker", "auto"];
    match word.get_ref().as_str() {
        "podman" => Engine::Podman,
        "docker" => Engine::Docker,
        "auto" => here(),
        other => {
            let title = format!("`{}` is not an engine for containers", shown(other));
            let complaint = Complaint::new(word.span(), title, "this word").meant(nearest(other, words));
            fields.complain(complaint.help(format!("write {}", one_of(words))));
            Engine::Podman
        }
    }
}

/// The options for the network. On the host's network, the container listens where any contender does; behind a bridge, on all of its own
/// addresses, and the engine leads the port there.
fn network(fields: &Fields<'_, '_>) -> Vec<String> {
    let words = ["host", "bridge"];
    let bridged = match fields.text("network") {
        None => false,
        Some(word) if word.get_ref() == "host" => false,
        Some(word) if word.get_ref() == "bridge" => true,
        Some(word) => {
            let title = format!("`{}` is not a network of containers", shown(word.get_ref()));
            let complaint = Complaint::new(word.span(), title, "this word");
            fields.complain(complaint.meant(nearest(word.get_ref(), words)).help("write host or bridge"));
            false
        }
    };
    if bridged {
        let publish = "--publish=\"${HOST:-127.0.0.1}:{port}:{port}\"";
        vec!["--network=bridge".into(), publish.into(), "--env=HOST=0.0.0.0".into()]
    } else {
        vec!["--network=host".into()]
    }
}

/// A contender's name as the name of an image may have it. The digest of a name that has other characters tells it from similar names.
fn tag(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let tag: String = name.chars().map(plain).collect();
    if tag == name && !tag.ends_with('-') {
        return tag;
    }
    format!("{tag}-{}", crate::hex(&Sha256::digest(name.as_bytes())[..4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_names_have_different_images() {
        assert_eq!((tag("node"), tag("node-cluster")), ("node".into(), "node-cluster".into()));
        let similar =
            ["Node", "a_b", "a.b", "a-b", "é", "ü", "node (cluster)", "node.containerfile", "a-", "node"];
        let tags: std::collections::BTreeSet<String> = similar.iter().map(|name| tag(name)).collect();
        assert_eq!(tags.len(), similar.len(), "{tags:?}");
        let is_valid = |tag: &String| {
            tag.bytes().all(|c| c == b'-' || c.is_ascii_lowercase() || c.is_ascii_digit())
                && !tag.ends_with('-')
        };
        assert!(tags.iter().all(is_valid), "{tags:?}");
    }
}
