//! Reads external load generators: those used for a published figure, and others for comparison.

use toml::Spanned;

use super::complaint::Complaint;
use super::fields::Fields;
use super::model::{Generator, Reads};
use super::parts::{folder, needs};
use super::values;
use super::words::{nearest, one_of, shown};

/// The default duration of one run, in seconds.
const DURATION_S: f64 = 3.0;
/// The default size of the null server's body, in bytes.
const BODY_BYTES: u32 = 13;
/// The largest body of the null server in a study, in bytes.
const MOST_BYTES: u32 = 1 << 24;

pub(super) fn generator(fields: &Fields<'_, '_>) -> Generator {
    let name = fields.required_text("name", "name = \"httpx\"");
    values::name(fields.reading(), &name);
    let duration = fields.number("duration");
    if let Some(duration) = duration.as_ref().filter(|duration| !(0.2..=120.0).contains(duration.get_ref())) {
        let title = "`duration` of [[generator]] is from 0.2 to 120 seconds";
        fields.complain(Complaint::new(duration.span(), title, format!("found {}", duration.get_ref())));
    }
    Generator {
        name,
        command: fields.required_text("command", "command = \"wrk -c {connections} -d {duration} {url}\""),
        folder: folder(fields),
        needs: needs(fields),
        reads: reads(fields),
        connections: fields
            .whole("connections", 1, super::contract::MOST_CONNECTIONS)
            .map(Spanned::into_inner),
        duration_s: duration.map_or(DURATION_S, Spanned::into_inner),
        body_bytes: fields.whole("body_bytes", 0, MOST_BYTES).map_or(BODY_BYTES, Spanned::into_inner),
        published: fields.flag("published").is_none_or(Spanned::into_inner),
    }
}

fn reads(fields: &Fields<'_, '_>) -> Reads {
    let kinds = ["json", "wrk", "oha"];
    let Some(kind) = fields.text("reads") else { return Reads::Json };
    match kind.get_ref().as_str() {
        "json" => Reads::Json,
        "wrk" | "oha" => Reads::Text,
        other => {
            let title = format!("`{}` is not a known form of output", shown(other));
            let complaint = Complaint::new(kind.span(), title, "this word").meant(nearest(other, kinds));
            fields.complain(complaint.help(format!(
                "write {}; json: the last line is an object with `throughput_rps`",
                one_of(kinds)
            )));
            Reads::Json
        }
    }
}
