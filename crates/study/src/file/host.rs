//! Reads `[[host]]`: the machines on which a study's contenders run, and from which its load comes.

use std::net::Ipv4Addr;

use super::complaint::Complaint;
use super::fields::Fields;
use super::model::{Host, Runs};
use super::words::{nearest, one_of, shown};
use crate::values::CpuList;

const EXAMPLE: &str = "ssh = \"ssh://user@host\"";

/// Reads all machines. Contenders run on one of them at most: on several, a race would compare the machines.
pub(super) fn hosts(all: &[Fields<'_, '_>]) -> Vec<Host> {
    let hosts: Vec<Host> = all.iter().filter_map(host).collect();
    let of_contenders = all.iter().filter(|fields| word(fields) == Some(Runs::Contenders.word()));
    let spans: Vec<_> = of_contenders.map(|fields| fields.key_span("runs")).collect();
    if let [first, second, ..] = &spans[..] {
        let title = "contenders run on two machines, and a race would compare the machines";
        let complaint = Complaint::new(second.clone(), title, "the second").also(first.clone(), "the first");
        all[0].complain(complaint.help("let all contenders run on one of them"));
    }
    hosts
}

fn word<'d>(fields: &Fields<'_, 'd>) -> Option<&'d str> {
    fields.get("runs")?.get_ref().as_str()
}

fn host(fields: &Fields<'_, '_>) -> Option<Host> {
    let ssh = fields.required_text("ssh", EXAMPLE);
    if !ssh.get_ref().is_empty() && !ssh.get_ref().starts_with("ssh://") {
        let title = format!("`{}` does not say how ssh reaches the machine", shown(ssh.get_ref()));
        fields.complain(
            Complaint::new(ssh.span(), title, "this value").help(format!("for example: {EXAMPLE}")),
        );
    }
    let runs = runs(fields);
    let host = Host { ssh, runs: runs?, address: address(fields), cpus: cpus(fields) };
    for key in ["address", "cpus"] {
        if host.runs == Runs::Load && fields.get(key).is_some() {
            let title = format!("`{key}` is a key of the machine of the contenders");
            let complaint = Complaint::new(fields.key_span(key), title, "but this one sends load");
            fields.complain(complaint.help("leave it out"));
        }
    }
    Some(host)
}

fn runs(fields: &Fields<'_, '_>) -> Option<Runs> {
    let word = fields.required_text("runs", "runs = \"contenders\"");
    let all = [Runs::Contenders, Runs::Load];
    let found = all.into_iter().find(|runs| runs.word() == word.get_ref());
    if found.is_none() && !word.get_ref().is_empty() {
        let words = all.map(Runs::word);
        let title = format!("`{}` is nothing that a machine runs", shown(word.get_ref()));
        let complaint = Complaint::new(word.span(), title, "this word").meant(nearest(word.get_ref(), words));
        fields.complain(complaint.help(format!("write {}", one_of(words))));
    }
    found
}

fn address(fields: &Fields<'_, '_>) -> Option<Ipv4Addr> {
    let text = fields.text("address")?;
    let address = text.get_ref().parse().ok();
    if address.is_none() {
        let title = format!("`{}` is not an IPv4 address", shown(text.get_ref()));
        fields.complain(
            Complaint::new(text.span(), title, "this value").help("for example: address = \"10.0.0.5\""),
        );
    }
    address
}

fn cpus(fields: &Fields<'_, '_>) -> Option<String> {
    let text = fields.text("cpus")?;
    if let Err(help) = CpuList::parse(text.get_ref()) {
        let title = format!("`{}` is not a list of cores", shown(text.get_ref()));
        fields.complain(Complaint::new(text.span(), title, "this value").help(help));
        return None;
    }
    Some(text.into_inner())
}
