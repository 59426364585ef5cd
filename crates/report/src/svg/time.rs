//! Throughput over time: every slice of every round, with starts and warm-ups between them; and the pilot's warm-up.
//!
//! Owns where epochs stand one behind the other. Must not know what is derived from rates.

use deadheat_analysis::number::{three_digits, time_ns};
use deadheat_analysis::{Report, ScenarioResult};
use deadheat_record::{Epoch, Pilot};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::canvas::{
    Area, Axis, BAD, Drawn, Figure, MUTED, Panels, RULE, WARM, color, color_of, legend, rates_over, styled,
    tick, write, zero_ticks,
};

const S: f64 = 1e9;
const FOOT: i32 = 64;

/// The rate of one slice.
struct Spot {
    contender: usize,
    epoch: usize,
    at_s: f64,
    rate: f64,
    dropped: bool,
}

/// The epochs of a scenario one behind the other, without what lay between them.
struct Timeline<'d> {
    names: Vec<(usize, &'d str)>,
    spots: Vec<Spot>,
    /// From the start of an epoch until its first slice.
    warm_ups: Vec<(f64, f64)>,
    end_s: f64,
}

/// Every slice of a scenario; none where there are none.
pub(super) fn of<'d>(report: &'d Report, scenario: &'d ScenarioResult) -> Option<Figure<'d>> {
    let line = Timeline::of(report, scenario);
    if line.spots.is_empty() {
        return None;
    }
    let says = |(place, name): &(usize, &str)| {
        let result = scenario.result(name);
        let rate = result.and_then(|one| one.throughput_rps).map(three_digits);
        let mean = rate.map_or_else(String::new, |rate| format!(", {rate} requests per second in the mean"));
        let slices = line.spots.iter().filter(|one| one.contender == *place).count();
        format!("{name}: {slices} slices{mean}")
    };
    Some(Figure {
        stem: format!("time-{}", scenario.name),
        title: format!("{}: rate of every slice", scenario.name),
        says: line.names.iter().map(says).collect(),
        height: Panels::height(line.names.len()) + FOOT,
        draw: Box::new(move |area: &Area<'_>| line.draw(area)),
    })
}

impl<'d> Timeline<'d> {
    fn of(report: &'d Report, scenario: &ScenarioResult) -> Self {
        let record = &report.record;
        let mut line = Self { names: Vec::new(), spots: Vec::new(), warm_ups: Vec::new(), end_s: 0.0 };
        for epoch in record.epochs_of(&scenario.name) {
            let slices = epoch.rounds.iter().flat_map(|round| &round.slices);
            let load_ns = slices.map(|slice| slice.start_ns).min().unwrap_or(epoch.took_ns);
            line.warm_ups.push((line.end_s, line.end_s + load_ns as f64 / S));
            line.spots.extend(spots(epoch, line.end_s));
            line.end_s += epoch.took_ns as f64 / S;
        }
        let names = record.plan.contenders.iter().map(|one| one.name.as_str()).enumerate();
        line.names =
            names.filter(|(place, _)| line.spots.iter().any(|spot| spot.contender == *place)).collect();
        line
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let plot = area.margin(Panels::height(0), FOOT - 34, 20, 20);
        let seconds = zero_ticks(self.end_s, 9.0);
        let mut chart = ChartBuilder::on(&plot)
            .x_label_area_size(34)
            .margin_left(76)
            .build_cartesian_2d(Axis::of(0.0..self.end_s, seconds.iter().copied()), Axis::bare())?;
        chart
            .configure_mesh()
            .disable_mesh()
            .disable_y_axis()
            .axis_style(RULE)
            .x_labels(seconds.len())
            .x_label_style(styled(15.0, MUTED, HPos::Center))
            .x_label_formatter(&|at| format!("{} s", tick(&three_digits(*at))))
            .draw()?;
        let x = |at_s: f64| chart.backend_coord(&(at_s, 0.0)).0;
        let high = self.spots.iter().map(|one| one.rate).fold(0.0, f64::max) * 1.06;
        let panels = Panels { area, left: x(0.0), right: x(self.end_s), high };
        for (row, (place, name)) in self.names.iter().enumerate() {
            panels.name(row, name)?;
            self.panel(&panels, row, *place, &x)?;
        }
        let crosses =
            if self.spots.iter().any(|one| one.dropped) { "; crosses were left out for all" } else { "" };
        let foot = format!(
            "epochs one behind the other, shaded: starts and warm-up; requests per second of each slice{crosses}"
        );
        let under = Panels::height(self.names.len()) + FOOT - 16;
        write(area, &foot, 130, &styled(15.0, MUTED, HPos::Left), (x(0.0), under))
    }

    /// One contender's slices.
    fn panel(&self, panels: &Panels<'_, '_>, row: usize, contender: usize, x: &dyn Fn(f64) -> i32) -> Drawn {
        let (area, (top, base)) = (panels.area, Panels::span(row));
        for (from, to) in &self.warm_ups {
            area.draw(&Rectangle::new([(x(*from), top), (x(*to), base)], WARM.filled()))?;
        }
        panels.rules(row, &zero_ticks(panels.high, 3.0), &three_digits)?;
        let paint = color(contender);
        let own: Vec<&Spot> = self.spots.iter().filter(|one| one.contender == contender).collect();
        for epoch in own.chunk_by(|one, next| one.epoch == next.epoch) {
            let kept = epoch.iter().filter(|one| !one.dropped);
            let line: Vec<(i32, i32)> = kept.map(|one| (x(one.at_s), panels.up(row, one.rate))).collect();
            area.draw(&PathElement::new(line, paint.mix(0.45).stroke_width(1)))?;
        }
        let size = if self.spots.len() > 2000 { 1 } else { 2 };
        for one in own {
            let place = (x(one.at_s), panels.up(row, one.rate));
            if one.dropped {
                area.draw(&Cross::new(place, 3, BAD))?;
            } else {
                area.draw(&Circle::new(place, size, paint.filled()))?;
            }
        }
        Ok(())
    }
}

/// The slices of an epoch that starts at `from_s`, in time order.
fn spots(epoch: &Epoch, from_s: f64) -> impl Iterator<Item = Spot> {
    epoch.rounds.iter().flat_map(move |round| {
        let dropped = round.dropped.is_some();
        round.slices.iter().filter_map(move |slice| {
            let middle_ns = slice.start_ns as f64 + slice.elapsed_ns as f64 / 2.0;
            let at_s = from_s + middle_ns / S;
            Some(Spot {
                contender: slice.contender,
                epoch: epoch.number,
                at_s,
                rate: slice.rate_per_s?,
                dropped,
            })
        })
    })
}

/// The rates of a pilot's windows, and the warm-up that was found by them; none where there are no windows.
pub(super) fn warm_up<'d>(report: &'d Report, pilot: &'d Pilot) -> Option<Figure<'d>> {
    let loaded = pilot.contenders.iter().any(|one| one.window_rates_per_s.len() > 1);
    let warm_up = time_ns(pilot.warmup_ns as f64);
    loaded.then(|| Figure {
        stem: format!("warm-up-{}", pilot.scenario),
        title: format!("{}: warm-up, as the pilot found it", pilot.scenario),
        says: vec![format!("every contender is loaded for {warm_up} before an epoch counts")],
        height: 400,
        draw: Box::new(move |area: &Area<'_>| draw_pilot(area, report, pilot)),
    })
}

fn draw_pilot(area: &Area<'_>, report: &Report, pilot: &Pilot) -> Drawn {
    let window_s = pilot.window_ns as f64 / S;
    let rates = || pilot.contenders.iter().map(|one| &one.window_rates_per_s);
    let end_s = rates().map(Vec::len).max().unwrap_or(0) as f64 * window_s;
    let high = rates().flatten().copied().fold(0.0, f64::max) * 1.06;
    let (seconds, ticks) = (zero_ticks(end_s, 7.0), zero_ticks(high, 5.0));
    let plot = area.margin(48, 34, 20, 20);
    let mut chart = ChartBuilder::on(&plot)
        .x_label_area_size(34)
        .y_label_area_size(76)
        .margin_right(200)
        .build_cartesian_2d(
            Axis::of(0.0..end_s.max(window_s), seconds.iter().copied()),
            Axis::of(0.0..high, ticks.iter().copied()),
        )?;
    let shaded = (pilot.warmup_ns as f64 / S).min(end_s);
    chart.draw_series([Rectangle::new([(0.0, 0.0), (shaded, high)], WARM.filled())])?;
    rates_over(&mut chart, (seconds.len(), ticks.len()), &|at| format!("{} s", tick(&three_digits(*at))))?;
    for one in &pilot.contenders {
        let windows = one.window_rates_per_s.iter().enumerate();
        let line = windows.map(|(at, rate)| ((at as f64 + 0.5) * window_s, *rate));
        let paint = color_of(report, &one.contender);
        chart.draw_series(LineSeries::new(line.clone(), paint.stroke_width(2)))?;
        chart.draw_series(line.map(|place| Circle::new(place, 2, paint.filled())))?;
    }
    let foot =
        format!("shaded: the {} that count as warm-up; requests per second", time_ns(pilot.warmup_ns as f64));
    write(area, &foot, 90, &styled(15.0, MUTED, HPos::Left), (96, 384))?;
    let named = pilot.contenders.iter().map(|one| one.contender.as_str());
    legend(area, named.map(|name| (name, color_of(report, name))))
}
