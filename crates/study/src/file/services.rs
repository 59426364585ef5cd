//! Reads how deadheat stops a service: `stop`, `signal` and `grace`.

use std::time::Duration;

use deadheat_record::Ending;
use toml::Spanned;

use super::complaint::Complaint;
use super::fields::Fields;
use super::words::{nearest, one_of, shown};
use crate::values::duration_or_none;

/// Signals that can ask a service to stop.
const SIGNALS: [&str; 6] = ["TERM", "INT", "QUIT", "HUP", "USR1", "USR2"];
/// The longest grace period.
const LONGEST: Duration = Duration::from_secs(120);

pub(super) fn ending(fields: &Fields<'_, '_>) -> Ending {
    let (command, signal) = (fields.text("stop"), fields.text("signal"));
    if let (Some(command), Some(signal)) = (&command, &signal) {
        let complaint = Complaint::new(signal.span(), "`stop` and `signal` exclude each other", "the signal");
        fields.complain(complaint.also(command.span(), "the command").help("keep one of them"));
    }
    if let Some(signal) = signal.as_ref().filter(|signal| !SIGNALS.contains(&signal.get_ref().as_str())) {
        let title = format!("`{}` is not a signal that asks a program to end", shown(signal.get_ref()));
        let complaint = Complaint::new(signal.span(), title, "this signal");
        let meant = nearest(signal.get_ref().trim_start_matches("SIG"), SIGNALS);
        fields.complain(complaint.meant(meant).help(format!("write {}", one_of(SIGNALS))));
    }
    Ending {
        command: command.map(Spanned::into_inner),
        signal: signal.map(Spanned::into_inner),
        grace_ns: fields.text("grace").and_then(|grace| grace_ns(fields, &grace)),
    }
}

fn grace_ns(fields: &Fields<'_, '_>, grace: &Spanned<String>) -> Option<u64> {
    let grace_time = duration_or_none(grace.get_ref().trim()).ok().filter(|time| *time <= LONGEST);
    if grace_time.is_none() {
        let title = format!("`{}` is not a time from 0s to {}s", shown(grace.get_ref()), LONGEST.as_secs());
        let complaint = Complaint::new(grace.span(), title, "this time");
        fields.complain(complaint.help("for example: grace = \"10s\""));
    }
    grace_time.and_then(|time| u64::try_from(time.as_nanos()).ok())
}
