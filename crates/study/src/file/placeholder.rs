//! Placeholders in commands and environments: which are available where, and how to detect misspelled ones.
//!
//! Only `{word}` without a preceding `$` is examined, and only a word similar to a known one is a mistake. Shells and awk also use braces; these
//! pass unchanged.

use std::ops::Range;

use deadheat_record::{Listen, command_placeholders};
use toml::Spanned;

use super::complaint::Complaint;
use super::fields::StudyReader;
use super::words::{one_of, shown};

/// The placeholders available in one command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'s> {
    /// Where the command's server listens. `None` for commands that start no server.
    pub(super) listen: Option<&'s Listen>,
    /// Whether the study has a dataset.
    pub(super) dataset: bool,
    /// Whether the command creates the dataset.
    pub(super) output: bool,
    /// Whether the command builds a contender.
    pub(super) build: bool,
    /// Whether it starts a contender in a scenario over TLS.
    pub(super) tls: bool,
    /// All services of the study: name, where it listens, and whether it is running when the command runs.
    pub(super) services: &'s [(&'s str, &'s Listen, bool)],
}

/// Complains about each placeholder in `text` that would not be replaced although the author meant one.
pub(super) fn check(reading: &StudyReader<'_>, text: &Spanned<String>, context: &Context<'_>) {
    for word in words(text.get_ref()) {
        if let Some(fault) = context.fault(word) {
            let place = place(reading, text.span(), word);
            let complaint = Complaint::new(place, fault.title, "not replaced");
            reading.complain(fault.helps.into_iter().fold(complaint, Complaint::help));
        }
    }
}

fn place(reading: &StudyReader<'_>, string: Range<usize>, word: &str) -> Range<usize> {
    reading.part_of(&string, &format!("{{{word}}}"))
}

/// The words of all `{word}` in `text`, without duplicates, in order of first appearance.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (_, word) in command_placeholders(text) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

struct Fault {
    title: String,
    helps: Vec<String>,
}

impl Fault {
    fn new(title: String, help: impl Into<String>) -> Self {
        Self { title, helps: vec![help.into()] }
    }
}

impl Context<'_> {
    /// All placeholders of this command.
    fn known(&self) -> Vec<String> {
        let mut known: Vec<String> = vec!["work".into(), "study".into()];
        known.extend(self.listen.map(|listen| own(listen).into()));
        known.extend(self.dataset.then(|| "dataset".into()));
        known.extend(self.output.then(|| "output".into()));
        known.extend(self.build.then(|| "seed".into()));
        known.extend(self.tls.then_some(["cert", "key"]).into_iter().flatten().map(String::from));
        let up = self.services.iter().filter(|(_, _, up)| *up);
        known.extend(up.map(|(name, listen, _)| format!("{name}.{}", own(listen))));
        known
    }

    fn fault(&self, word: &str) -> Option<Fault> {
        let known = self.known();
        if known.iter().any(|name| name == word) {
            return None;
        }
        match word {
            "port" | "socket" => Some(self.wrong_listen(word)),
            // `{key}` is not a mistake, because programs such as jq use it.
            "cert" => Some(Fault::new(
                "{cert} has no value here".into(),
                "contenders in a [[scenario]] with `tls = true` have a certificate, unless they say `tls = false`",
            )),
            "seed" => Some(Fault::new(
                "{seed} has no value here".into(),
                "the `build` of a contender that is no container has one: it then runs before each epoch, with another seed",
            )),
            "dataset" if self.output => Some(Fault::new(
                "{dataset} is what this command makes".into(),
                "write to {output}: it becomes the dataset when the command has succeeded",
            )),
            "dataset" => Some(Fault::new(
                "{dataset} is used, and the study has no [dataset]".into(),
                "add [dataset] with `command` and `output`",
            )),
            _ => self.wrong_service(word).or_else(|| near_miss(word, &known)),
        }
    }

    fn wrong_listen(&self, word: &str) -> Fault {
        let title = format!("{{{word}}} has no value here");
        let help = match self.listen {
            None => "this command runs before any server has its port or socket",
            Some(Listen::Socket) => "`socket = true` is set: use {socket}, or remove that line",
            Some(_) => "add `socket = true` to listen on a unix socket, or use {port}",
        };
        Fault::new(title, help)
    }

    /// The mistake in a `NAME.port` or `NAME.socket`.
    fn wrong_service(&self, word: &str) -> Option<Fault> {
        let (name, kind) = word.rsplit_once('.').filter(|(_, kind)| matches!(*kind, "port" | "socket"))?;
        let title = format!("{{{word}}} has no value here");
        let Some((_, listen, up)) = self.services.iter().find(|(service, _, _)| *service == name) else {
            let all = one_of(self.services.iter().map(|(name, _, _)| *name));
            return Some(Fault::new(
                title,
                format!("the study has no service `{name}`; its services: {all}"),
            ));
        };
        if own(listen) != kind {
            return Some(Fault::new(
                title,
                format!("the service listens elsewhere: use {{{name}.{}}}", own(listen)),
            ));
        }
        (!up).then(|| Fault::new(title, format!("add services = [\"{name}\"], so that it is up first")))
    }
}

/// The placeholder for the address of a server.
fn own(listen: &Listen) -> &'static str {
    match listen {
        Listen::Socket => "socket",
        Listen::FreePort | Listen::Port(_) => "port",
    }
}

fn near_miss(word: &str, known: &[String]) -> Option<Fault> {
    let lower = word.to_lowercase();
    let allowed = if lower.chars().count() <= 4 { 1 } else { 2 };
    let distance = |name: &str| strsim::damerau_levenshtein(&lower, &name.to_lowercase());
    let near = known.iter().map(|name| (distance(name), name)).min_by_key(|(distance, _)| *distance);
    let (_, meant) = near.filter(|(distance, _)| *distance <= allowed)?;
    let helps = vec![
        format!("did you mean {{{meant}}}?"),
        format!("available here: {}", braced(known)),
        format!("braces of the shell or of awk need a space inside: {{ {} }}", shown(word)),
    ];
    Some(Fault { title: format!("{{{}}} is not a placeholder", shown(word)), helps })
}

fn braced(known: &[String]) -> String {
    known.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context<'s>(listen: Option<&'s Listen>, services: &'s [(&'s str, &'s Listen, bool)]) -> Context<'s> {
        Context { listen, dataset: true, output: false, build: false, tls: false, services }
    }

    #[test]
    fn a_certificate_is_for_contenders_over_tls() {
        let plain = context(Some(&Listen::FreePort), &[]);
        assert!(plain.fault("cert").unwrap().helps[0].contains("tls = true"));
        assert!(plain.fault("key").is_none(), "`jq '{{key}}'` has nothing to do with TLS");
        let secured = Context { tls: true, ..plain };
        assert!(secured.fault("cert").is_none() && secured.fault("key").is_none());
        assert_eq!(secured.fault("crt").unwrap().helps[0], "did you mean {cert}?");
    }

    #[test]
    fn braces_of_the_shell_are_not_placeholders() {
        let context = context(Some(&Listen::FreePort), &[]);
        for text in [
            "exec \"${PROT:-1}/x\" ${prot} ${port}",
            "awk '{print}' x",
            "awk '{ prot }'",
            "echo {a,b} {} {{x}} }{",
            "jq '{id: .id}'",
            "node a.mjs {port} {dataset} {work} {study}",
            "sh -c 'f() { exec $1; }; f {port}'",
        ] {
            let wrong: Vec<_> =
                words(text).into_iter().filter(|word| context.fault(word).is_some()).collect();
            assert!(wrong.is_empty(), "{text}: {wrong:?}");
        }
    }

    #[test]
    fn near_misses_are_told() {
        let context = context(Some(&Listen::FreePort), &[]);
        for (word, meant) in [("prot", "port"), ("PORT", "port"), ("datset", "dataset"), ("Study", "study")] {
            let fault = context.fault(word).expect(word);
            assert_eq!(fault.helps[0], format!("did you mean {{{meant}}}?"));
        }
    }

    #[test]
    fn a_place_to_listen_is_the_commands_own() {
        let sockets = context(Some(&Listen::Socket), &[]);
        assert!(sockets.fault("socket").is_none());
        assert!(sockets.fault("port").is_some());
        assert!(context(None, &[]).fault("port").is_some());
        assert!(context(Some(&Listen::Port(80)), &[]).fault("socket").is_some());
    }

    #[test]
    fn services_must_be_up() {
        let services = [("db", &Listen::FreePort, true), ("cache", &Listen::Socket, false)];
        let context = context(Some(&Listen::FreePort), &services);
        assert!(context.fault("db.port").is_none());
        assert!(context.fault("db.socket").unwrap().helps[0].contains("{db.port}"));
        assert!(context.fault("cache.socket").unwrap().helps[0].contains("services = [\"cache\"]"));
        assert!(context.fault("dbb.port").unwrap().helps[0].contains("no service `dbb`"));
    }
}
