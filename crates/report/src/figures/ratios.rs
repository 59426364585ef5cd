//! Ratios around 1, with their intervals and epoch by epoch.
//!
//! Owns: how a comparison is shown. Must not know: how it was computed.

use deadheat_analysis::number::{
    ends_nearby, interval, percent, quotient, ratio, ratio_decimals, ratio_within,
};
use deadheat_analysis::{Comparison, ScenarioResult};
use deadheat_record::{Metric, VerdictWord};

use super::axis::{ends, labelled, ratio_ticks, tick};
use super::model::{Axis, Cell, Color, Dot, Drawing, Figure, Row, Rows, Section, Table};
use super::{Scope, Set};

/// The comparisons in one metric that share a figure.
struct Pairs<'r> {
    set: Set<'r>,
    metric: Metric,
    margin: f64,
}

/// Each ratio with its interval.
pub(super) fn intervals(scope: &Scope<'_>) -> Vec<Figure> {
    pairs(scope).iter().map(Pairs::intervals).collect()
}

/// Each epoch's ratio.
pub(super) fn epochs(scope: &Scope<'_>) -> Vec<Figure> {
    let some = |pairs: &&Pairs<'_>| pairs.all().any(|(_, one)| !one.epoch_ratios.is_empty());
    pairs(scope).iter().filter(some).map(Pairs::epochs).collect()
}

/// One entry for each metric, in the order in which scenarios compare them.
fn pairs<'r>(scope: &Scope<'r>) -> Vec<Pairs<'r>> {
    let mut metrics: Vec<Metric> = Vec::new();
    for one in scope.measured().flat_map(|one| &one.comparisons) {
        if !metrics.contains(&one.metric) {
            metrics.push(one.metric);
        }
    }
    let margin = scope.report.method().margin;
    let of_metric = |metric: Metric| {
        let sets = scope.sets(move |scenario| of(scenario, metric).count());
        sets.into_iter().map(move |set| Pairs { set, metric, margin })
    };
    metrics.into_iter().flat_map(of_metric).collect()
}

fn positive(ratio: f64) -> bool {
    ratio > 0.0 && ratio.is_finite()
}

fn of(scenario: &ScenarioResult, metric: Metric) -> impl Iterator<Item = &Comparison> {
    scenario.comparisons.iter().filter(move |one| one.metric == metric && one.ratio.is_some_and(positive))
}

impl<'r> Pairs<'r> {
    /// All comparisons with their scenario.
    fn all(&self) -> impl Iterator<Item = (&'r ScenarioResult, &'r Comparison)> {
        let scenarios = self.set.scenarios.iter().copied();
        scenarios.flat_map(|scenario| of(scenario, self.metric).map(move |one| (scenario, one)))
    }

    fn intervals(&self) -> Figure {
        let ratios = self.all().flat_map(|(_, one)| ends_nearby(one.low, one.ratio, one.high));
        let x = self.axis(ratios);
        let (low, high) = x.domain;
        let row = |one: &Comparison| {
            let said = said(one);
            let hollow = hollow(one);
            let about = format!(
                "ratio {}, interval {}, {}, {} epochs",
                value(one),
                interval(one.low, one.high),
                one.verdict.word(),
                one.epochs
            );
            // Cut off an interval that exceeds the axis at its edge.
            let ends = one.low.zip(one.high).map(|(from, to)| (from.clamp(low, high), to.clamp(low, high)));
            let mark = one.ratio.map(|value| Dot { value, said: about, hollow });
            let shown = one.ratio.map_or_else(String::new, |value| quotient(value, one.low, one.high));
            let aside = format!("{shown} {said}");
            Row { aside, interval: ends, mark, ..Row::new(&name(one), color(one)) }
        };
        let some_hollow =
            if self.all().any(|(_, one)| hollow(one)) { " Hollow: inconclusive or invalid." } else { "" };
        let note = format!(
            "Contender divided by baseline. Dot: the ratio. Bar: its interval. Shaded: within {} of 1, where two count as equivalent. A bar \
             that stays clear of 1 tells the two apart.{some_hollow}",
            percent(self.margin)
        );
        let columns = ["pair", "scenario", "#ratio", "#low", "#high", "verdict", "#epochs"];
        let columns = [&columns[..], &["#alpha", "#could have detected"]].concat();
        let cells = |(scenario, one): (&ScenarioResult, &Comparison)| {
            let decimals = ratio_decimals(one.low, one.high);
            let number = |value| Cell::number(value, |value| ratio(value, decimals));
            vec![
                Cell::text(name(one)),
                Cell::text(&scenario.name),
                number(one.ratio),
                number(one.low),
                number(one.high),
                Cell::text(said(one)),
                Cell::count(one.epochs),
                Cell::number(Some(one.alpha), alpha),
                Cell::number(one.could_have_detected(scenario.ended), |value| percent(value - 1.0)),
            ]
        };
        let caption = format!("{}: ratios with their intervals", self.metric.row().title);
        let table = Table::new(caption, &columns, self.all().map(cells));
        self.figure(("ratios", Section::Ratios), self.metric.row().title, &note, x, row, table)
    }

    fn epochs(&self) -> Figure {
        let ratios = self.all().flat_map(|(_, one)| one.epoch_ratios.iter().copied().chain(one.ratio));
        let row = |one: &Comparison| {
            let each = one.numbered_ratios().filter(|(_, each)| positive(*each));
            let dot =
                |(number, each): (usize, f64)| Dot::new(each, format!("epoch {number}: {}", ratio(each, 3)));
            let aside = format!("{}, {} epochs", value(one), one.epoch_ratios.len());
            let mark = one.ratio.map(|ratio| Dot::new(ratio, format!("all epochs: {}", value(one))));
            Row { aside, mark, dots: each.map(dot).collect(), ..Row::new(&name(one), color(one)) }
        };
        let cells = |(scenario, one): (&'r ScenarioResult, &'r Comparison)| {
            one.numbered_ratios().map(move |(number, each)| {
                let each = Cell::number(Some(each), |each| ratio(each, 3));
                vec![Cell::text(name(one)), Cell::text(&scenario.name), Cell::count(number), each]
            })
        };
        let caption = format!("{}: the ratio of each epoch", self.metric.row().title);
        let columns = ["pair", "scenario", "#epoch", "#ratio"];
        let heading = format!("{}, epoch by epoch", self.metric.row().title);
        let note = "One dot for each epoch, the first at the top; the line is the ratio of all epochs. Without a trend, dots scatter around it.";
        let table = Table::new(caption, &columns, self.all().flat_map(cells));
        self.figure(("epochs", Section::Epochs), &heading, note, self.axis(ratios), row, table)
    }

    fn figure(
        &self,
        kind: (&'static str, Section),
        title: &str,
        note: &str,
        x: Axis,
        row: impl Fn(&Comparison) -> Row,
        table: Table,
    ) -> Figure {
        let groups = self.set.groups(|scenario| of(scenario, self.metric).map(&row).collect());
        let drawing = Drawing::Rows(Rows { x, band: Some(self.band()), rule: Some(1.0), groups });
        let subject = format!("{}-{}", self.set.subject(), self.metric.word());
        Figure { note: note.into(), ..Figure::new(kind, subject, self.set.title(title), drawing, table) }
    }

    /// The range of ratios that count as equivalent.
    fn band(&self) -> (f64, f64) {
        (1.0 / (1.0 + self.margin), 1.0 + self.margin)
    }

    /// An axis that includes all these ratios and the band.
    fn axis(&self, ratios: impl Iterator<Item = f64>) -> Axis {
        let band = self.band();
        let (low, high) = ends(ratios.chain([band.0 / 1.02, band.1 * 1.02])).unwrap_or(band);
        let room = (high / low).powf(0.06);
        let domain = (low / room, high * room);
        let ticks = ratio_ticks(domain.0, domain.1);
        let even = ticks.iter().all(|one| (one * 100.0 - (one * 100.0).round()).abs() < 1e-6);
        let format = |one: f64| match one {
            10.0.. => tick(&ratio(one, 0)),
            0.1.. => format!("{one:.*}", if even { 2 } else { 3 }),
            _ => tick(&format!("{one:.6}")),
        };
        let better = if self.metric.more_is_better() { "higher is better" } else { "lower is better" };
        Axis { label: format!("ratio, {better}"), log: true, domain, ticks: labelled(ticks, format) }
    }
}

fn color(one: &Comparison) -> Color {
    match one.verdict {
        VerdictWord::Faster if !one.negligible => Color::Good,
        VerdictWord::Slower if !one.negligible => Color::Bad,
        _ => Color::Neutral,
    }
}

/// Whether the comparison has no conclusion.
fn hollow(one: &Comparison) -> bool {
    matches!(one.verdict, VerdictWord::Inconclusive | VerdictWord::Invalid)
}

fn name(one: &Comparison) -> String {
    format!("{} / {}", one.contender, one.baseline)
}

fn value(one: &Comparison) -> String {
    one.ratio.map_or_else(String::new, |value| ratio_within(value, one.low, one.high))
}

fn mark(verdict: VerdictWord) -> &'static str {
    match verdict {
        VerdictWord::Faster => "▲",
        VerdictWord::Slower => "▼",
        VerdictWord::Equivalent => "=",
        VerdictWord::Inconclusive => "?",
        VerdictWord::Invalid => "✕",
    }
}

/// The verdict in words.
fn said(one: &Comparison) -> String {
    let (mark, word) = (mark(one.verdict), one.verdict.word());
    let negligible = if one.negligible { ", negligible" } else { "" };
    let provisional = if one.provisional { ", provisional" } else { "" };
    format!("{mark} {word}{negligible}{provisional}")
}

/// An error rate with at most three digits.
fn alpha(value: f64) -> String {
    format!("{value:.2e}").parse::<f64>().unwrap_or(value).to_string()
}
