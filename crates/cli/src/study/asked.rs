//! Reads what a scenario asks: which metrics are compared.

use deadheat_record::{Metric, Shape};
use toml::Spanned;

use super::complaint::Complaint;
use super::fields::Fields;
use super::words::{nearest, one_of, shown};

/// `metrics`, what matters most first; empty where it is not given or makes no sense.
pub(super) fn metrics(fields: &Fields<'_, '_>, shape: &Shape) -> Vec<Metric> {
    let Some(words) = fields.texts("metrics") else { return Vec::new() };
    if words.is_empty() {
        let place = fields.get("metrics").map_or(fields.span(), Spanned::span);
        let complaint = Complaint::new(place, "`metrics` of [[scenario]] is empty", "no metric here");
        fields.complain(complaint.help("for example: metrics = [\"p50\", \"p99\"]; or leave it out"));
    }
    let mut metrics: Vec<(Metric, &Spanned<String>)> = Vec::new();
    for word in &words {
        let Some(metric) = metric(fields, word) else { continue };
        match metrics.iter().find(|(known, _)| *known == metric) {
            Some((_, first)) => {
                let title = format!("the scenario lists the metric `{}` twice", metric.word());
                let complaint = Complaint::new(word.span(), title, "the second");
                fields.complain(complaint.also(first.span(), "the first").help("list it once"));
            }
            None => metrics.push((metric, word)),
        }
        if metric == Metric::Throughput && matches!(shape, Shape::Open { .. }) {
            let title = "at a common rate all contenders have the same throughput";
            let complaint = Complaint::new(word.span(), title, "nothing can be told apart by this");
            fields.complain(complaint.help("compare \"p50\", \"p99\" or \"cpu\"; or leave out `rate`"));
        }
    }
    metrics.into_iter().map(|(metric, _)| metric).collect()
}

fn metric(fields: &Fields<'_, '_>, word: &Spanned<String>) -> Option<Metric> {
    let words = Metric::ALL.map(Metric::word);
    let found = Metric::ALL.into_iter().find(|metric| metric.word() == word.get_ref());
    if found.is_none() {
        let title = format!("`{}` is no metric", shown(word.get_ref()));
        let complaint = Complaint::new(word.span(), title, "this word");
        let complaint = complaint.meant(nearest(word.get_ref(), words));
        fields.complain(complaint.help(format!("it is {}", one_of(words))));
    }
    found
}
