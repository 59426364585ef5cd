//! Figures as SVG files: ratios with their intervals and epochs, latency by percentile.
//!
//! Owns: which figures a document has, and the names of their files. Must not know files. Names are data: the drawing library
//! escapes them, and what would act on a reader is made visible before.

mod canvas;
mod latency;
mod ratios;

use std::collections::BTreeSet;

use deadheat_record::{Comparison, Document};

use crate::ReportError;
use canvas::{Area, figure};

/// All figures that a document has something for: the name of a file, and what goes into it.
///
/// # Errors
/// When a figure cannot be drawn.
pub fn svg(document: &Document) -> Result<Vec<(String, String)>, ReportError> {
    let mut figures = Vec::new();
    let mut taken = BTreeSet::new();
    let margin = document.record.plan.method.margin;
    for scenario in &document.scenarios {
        for ranking in &scenario.rankings {
            let metric = ranking.metric;
            let pairs: Vec<&Comparison> = scenario
                .comparisons
                .iter()
                .filter(|one| one.metric == metric && one.ratio.is_some())
                .collect();
            if !pairs.is_empty() {
                let name = file(&format!("ratios-{}-{}", scenario.name, metric.word()), &mut taken);
                let height = 118 + 52 * pairs.len() as u32;
                let draw = |area: &Area<'_>| ratios::ratios(area, scenario, metric, &pairs, margin);
                figures.push((name.clone(), figure(&name, height, draw)?));
            }
        }
        if scenario.results.iter().any(|one| one.latency_curve.len() > 1) {
            let name = file(&format!("latency-{}", scenario.name), &mut taken);
            let text = figure(&name, 520, |area| latency::latency(area, document, scenario))?;
            figures.push((name, text));
        }
    }
    Ok(figures)
}

/// A name for a file that says what it holds, and that no other figure has.
fn file(words: &str, taken: &mut BTreeSet<String>) -> String {
    let harmless = |one: char| if one.is_ascii_alphanumeric() { one.to_ascii_lowercase() } else { '-' };
    let stem: String = words.chars().map(harmless).take(80).collect();
    let name = (1..).map(|n| if n == 1 { format!("{stem}.svg") } else { format!("{stem}-{n}.svg") });
    let free = name.into_iter().find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_harmless_names_of_their_own() {
        let mut taken = BTreeSet::new();
        assert_eq!(file("ratios-../x y", &mut taken), "ratios----x-y.svg");
        assert_eq!(file("ratios-../x y", &mut taken), "ratios----x-y-2.svg");
    }
}
