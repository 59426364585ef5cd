//! Figures as SVG files: those of the page that say something without a pointer.
//!
//! Owns: which figures a document has, and the names of their files. Must not know files. Names are data: what would act on a
//! reader is made visible, and the rest is escaped.

mod canvas;
mod ladder;
mod latency;
mod memory;
mod ratios;
mod resources;
mod rows;
mod scaling;
mod time;

use std::collections::BTreeSet;

use deadheat_analysis::Report;

use crate::ReportError;
use canvas::Figure;

/// All figures that a document has something for: the name of a file, and what goes into it.
///
/// # Errors
/// When a figure cannot be drawn.
pub fn svg(report: &Report) -> Result<Vec<(String, String)>, ReportError> {
    let mut taken = BTreeSet::new();
    let write = |figure: Figure<'_>| {
        let name = file(&figure.stem, &mut taken);
        let text = figure.text(&name)?;
        Ok((name, text))
    };
    figures(report).into_iter().map(write).collect()
}

/// What is there to be drawn, in the page's order.
fn figures(report: &Report) -> Vec<Figure<'_>> {
    let mut figures = Vec::new();
    for scenario in &report.scenarios {
        figures.extend(ratios::of(report, scenario));
        figures.extend(latency::of(report, scenario));
        figures.extend(time::of(report, scenario));
        let pilot = report.record.pilots.iter().find(|pilot| pilot.scenario == scenario.name);
        figures.extend(pilot.and_then(|pilot| time::warm_up(report, pilot)));
        figures.extend(resources::cpu(report, scenario));
        figures.extend(memory::of(report, scenario));
        figures.extend(resources::cold_start(report, scenario));
        figures.extend(latency::edge_cache(report, scenario));
    }
    figures.extend(report.ladders.iter().filter_map(ladder::of));
    figures.extend(report.sweeps.iter().filter_map(|sweep| scaling::of(report, sweep)));
    figures
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
