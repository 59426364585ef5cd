//! Reads which garbage collector a contender has, and how to turn its log on.
//!
//! Owns: the default way for each kind. Must not know: when the log is on, or how to read it.

use std::collections::BTreeMap;

use deadheat_record::CollectorKind;
use toml::Spanned;
use toml::de::DeValue;

use super::complaint::Complaint;
use super::fields::Fields;
use super::keys;
use super::model::Collector;
use super::parts::env;
use super::words::{nearest, one_of, shown};

/// Node.js accepts few V8 options from its environment, and `--trace-gc` is not among them. Therefore a module that needs no file sets the option
/// before the server's own modules load. Deno has a separate variable for V8 options.
const V8: &[(&str, &str)] = &[
    (
        "NODE_OPTIONS",
        "--import=data:text/javascript,import%20v8%20from'node:v8';v8.setFlagsFromString('--trace-gc')",
    ),
    ("DENO_V8_FLAGS", "--trace-gc"),
];
/// Bun passes variables with this prefix to JavaScriptCore as options.
const JAVASCRIPTCORE: &[(&str, &str)] = &[("BUN_JSC_logGC", "1")];
const GO: &[(&str, &str)] = &[("GODEBUG", "gctrace=1")];

/// Reads `collector = "v8"`, or `{ kind = "v8", env = { NODE_OPTIONS = "..." } }`.
pub(super) fn collector(fields: &Fields<'_, '_>) -> Option<Collector> {
    let example = "collector = \"v8\"";
    let found = fields.get("collector")?;
    match found.get_ref() {
        DeValue::String(_) => {
            let kind = kind(fields, &fields.required_text("collector", example))?;
            Some(Collector { kind, env: usual(kind) })
        }
        DeValue::Table(table) => {
            let inner = fields.inner(table, found.span(), &keys::COLLECTOR);
            let env = inner.get("env").map(|_| env(&inner));
            let kind = kind(&inner, &inner.required_text("kind", "{ kind = \"v8\" }"))?;
            Some(Collector { kind, env: env.unwrap_or_else(|| usual(kind)) })
        }
        _ => {
            fields.wrong("collector", "a word such as \"v8\", or a table with `kind` and `env`", found);
            None
        }
    }
}

/// The kind with this name. Does not complain about an empty name, because the reader has already done so.
fn kind(fields: &Fields<'_, '_>, word: &Spanned<String>) -> Option<CollectorKind> {
    let kinds = CollectorKind::ALL;
    let found = kinds.into_iter().find(|kind| kind.word() == word.get_ref());
    if found.is_none() && !word.get_ref().is_empty() {
        let title = format!("deadheat cannot read the log of the collector `{}`", shown(word.get_ref()));
        let complaint = Complaint::new(word.span(), title, "this word");
        let complaint = complaint.meant(nearest(word.get_ref(), kinds.map(CollectorKind::word)));
        fields.complain(complaint.help(format!(
            "write {}; leave `collector` out for any other runtime",
            one_of(kinds.map(CollectorKind::word))
        )));
    }
    found
}

/// The default environment that turns the log of this kind of collector on.
fn usual(kind: CollectorKind) -> BTreeMap<String, Spanned<String>> {
    let env = match kind {
        CollectorKind::V8 => V8,
        CollectorKind::JavaScriptCore => JAVASCRIPTCORE,
        CollectorKind::Go => GO,
    };
    env.iter().map(|(name, value)| ((*name).to_owned(), Spanned::new(0..0, (*value).to_owned()))).collect()
}
