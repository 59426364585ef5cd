//! Figures: the content of each figure, defined once for the page and for files.
//!
//! Owns: which figures a report has, and which scenarios share one. Must not know: how figures are drawn. The page does that in `web/src`, and `svg`
//! does it for files. To add a figure, write a function here and add it to `FIGURES`; no other code changes.

mod axis;
mod collectors;
mod costs;
mod edge;
mod ladder;
mod latency;
mod model;
mod profile;
mod ratios;
mod scaling;
mod shift;
mod starts;
mod time;

use deadheat_analysis::{Report, ScenarioResult};

pub(crate) use axis::{of_powers, tick};
pub(crate) use model::*;

/// All figures of a kind.
type Figures = fn(&Scope<'_>) -> Vec<Figure>;

/// Every kind of figure, in the order within their sections.
const FIGURES: [Figures; 20] = [
    ratios::intervals,
    ratios::epochs,
    latency::by_percentile,
    shift::ratios,
    shift::against_each_other,
    time::slices,
    time::warm_up,
    costs::cpu,
    costs::cpu_parts,
    costs::memory,
    costs::memory_over_time,
    costs::artefacts,
    collectors::pauses,
    profile::gains,
    profile::flames,
    starts::fresh,
    starts::of_epochs,
    ladder::parts,
    scaling::rates,
    edge::behind,
];

/// With more rows than this, each scenario has its own figure.
const MOST_ROWS: usize = 40;

/// The data of the figures, and which scenarios share one.
pub(crate) struct Scope<'r> {
    report: &'r Report,
    together: bool,
}

impl<'r> Scope<'r> {
    /// For a page: scenarios share a figure while there is room. Headings name the scenarios if there are several.
    pub(crate) fn page(report: &'r Report) -> Self {
        Self { report, together: true }
    }

    /// For files: each figure is about one scenario and names it.
    pub(crate) fn files(report: &'r Report) -> Self {
        Self { report, together: false }
    }

    /// All figures that have data.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        FIGURES.iter().flat_map(|figures| figures(self)).collect()
    }

    /// Scenarios in which something was measured.
    fn measured(&self) -> impl Iterator<Item = &'r ScenarioResult> {
        self.report.scenarios.iter().filter(|one| one.epochs > 0)
    }

    /// Whether the figure of a single scenario names it.
    fn named(&self) -> bool {
        !self.together || self.measured().count() > 1
    }

    /// A heading; it starts with the name of its subject if that is needed.
    fn title(&self, of: &str, title: &str) -> String {
        if self.named() { format!("{of}: {title}") } else { title.to_owned() }
    }

    /// The selected contenders, in plan order.
    fn contenders(&self, wanted: impl Fn(usize, &str) -> bool) -> Vec<(usize, &'r str)> {
        let names = self.report.record.plan.contenders.iter().map(|one| one.name.as_str()).enumerate();
        names.filter(|(place, name)| wanted(*place, name)).collect()
    }

    /// A panel for each contender that has lines, in plan order.
    fn panels(&self, lines: Vec<(usize, Line)>, shaded: &[(f64, f64)]) -> Vec<Panel> {
        let mut of: Vec<Vec<Line>> = self.report.record.plan.contenders.iter().map(|_| Vec::new()).collect();
        for (place, line) in lines {
            of[place].extend(Some(line).filter(|line| !line.points.is_empty()));
        }
        let names = self.report.record.plan.contenders.iter().map(|one| one.name.clone());
        let panel = |(name, lines)| Panel { title: Some(name), shaded: shaded.to_vec(), lines };
        names.zip(of).filter(|(_, lines)| !lines.is_empty()).map(panel).collect()
    }

    fn color(&self, contender: &str) -> Color {
        Color::Series(self.report.record.plan.index_of(contender).unwrap_or(0))
    }

    fn legend<'n>(&self, contenders: impl IntoIterator<Item = &'n str>) -> Vec<Key> {
        let key = |name: &str| Key { label: name.to_owned(), color: self.color(name) };
        contenders.into_iter().map(key).collect()
    }

    /// One set for each scenario that has rows.
    fn each(&self, rows: impl Fn(&ScenarioResult) -> usize) -> Vec<Set<'r>> {
        let some = self.measured().filter(|one| rows(one) > 0);
        some.map(|one| Set { scenarios: vec![one], named: self.named() }).collect()
    }

    /// The scenarios that have rows, in one set if there is room, otherwise in one set each.
    fn sets(&self, rows: impl Fn(&ScenarioResult) -> usize) -> Vec<Set<'r>> {
        let each = self.each(&rows);
        let all = each.iter().flat_map(|set| &set.scenarios).map(|one| rows(one)).sum::<usize>();
        if !self.together || all > MOST_ROWS || each.len() < 2 {
            return each;
        }
        vec![Set { scenarios: each.into_iter().flat_map(|set| set.scenarios).collect(), named: false }]
    }
}

/// Scenarios that share a figure.
struct Set<'r> {
    scenarios: Vec<&'r ScenarioResult>,
    named: bool,
}

impl<'r> Set<'r> {
    fn subject(&self) -> String {
        self.scenarios.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join("-")
    }

    fn title(&self, title: &str) -> String {
        match &self.scenarios[..] {
            [only] if self.named => format!("{}: {title}", only.name),
            _ => title.to_owned(),
        }
    }

    /// Rows grouped under the names of their scenarios, if there are several.
    fn groups(&self, rows: impl Fn(&'r ScenarioResult) -> Vec<Row>) -> Vec<Group> {
        let title = |one: &ScenarioResult| (self.scenarios.len() > 1).then(|| one.name.clone());
        self.scenarios.iter().map(|one| Group { title: title(one), rows: rows(one) }).collect()
    }
}

/// All values in groups.
fn values(groups: &[Group]) -> impl Iterator<Item = f64> {
    let rows = groups.iter().flat_map(|group| &group.rows);
    rows.flat_map(|row| {
        let bars = row.bars.iter().map(|bar| bar.to);
        row.dots.iter().chain(&row.mark).map(|dot| dot.value).chain(bars)
    })
}
