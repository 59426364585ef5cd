//! Memory over time: from round to round of every epoch, all contenders on one scale.
//!
//! Owns how epochs lie one over the other. Must not know how memory is read.

use deadheat_analysis::number::{bytes, three_digits};
use deadheat_analysis::{Report, ScenarioResult};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::canvas::{
    Area, Axis, Drawn, Figure, MUTED, Panels, across, between, color, styled, tick, write, zero_ticks,
};

const S: f64 = 1e9;
const MIB: f64 = 1024.0 * 1024.0;
const FOOT: i32 = 64;

/// What one contender took in one epoch: seconds since the epoch's start, and bytes.
struct Course {
    contender: usize,
    points: Vec<(f64, f64)>,
}

/// All courses of a scenario.
struct Courses<'d> {
    names: Vec<(usize, &'d str)>,
    each: Vec<Course>,
}

/// Memory from round to round; none where none was read.
pub(super) fn of<'d>(report: &'d Report, scenario: &'d ScenarioResult) -> Option<Figure<'d>> {
    let courses = Courses::of(report, scenario);
    if courses.each.is_empty() {
        return None;
    }
    let says = |(place, name): &(usize, &str)| {
        let sizes = || courses.points(Some(*place)).map(|(_, size)| size);
        let [low, high] = [sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max)];
        format!("{name}: {} to {}", bytes(low as u64), bytes(high as u64))
    };
    Some(Figure {
        stem: format!("memory-{}", scenario.name),
        title: format!("{}: memory from round to round", scenario.name),
        says: courses.names.iter().map(says).collect(),
        height: Panels::height(courses.names.len()) + FOOT,
        draw: Box::new(move |area: &Area<'_>| courses.draw(area)),
    })
}

impl<'d> Courses<'d> {
    fn of(report: &'d Report, scenario: &ScenarioResult) -> Self {
        let record = &report.record;
        let parts = record.epochs_of(&scenario.name).flat_map(|epoch| &epoch.contenders);
        let each: Vec<Course> = parts
            .filter_map(|part| {
                let points = part.usage.memory.iter().map(|one| (one.at_ns as f64 / S, one.pss_bytes as f64));
                let points: Vec<(f64, f64)> = points.collect();
                (!points.is_empty()).then_some(Course { contender: part.contender, points })
            })
            .collect();
        let names = record.plan.contenders.iter().map(|one| one.name.as_str()).enumerate();
        let names = names.filter(|(place, _)| each.iter().any(|one| one.contender == *place)).collect();
        Self { names, each }
    }

    /// Of one contender, or of all.
    fn points(&self, contender: Option<usize>) -> impl Iterator<Item = (f64, f64)> {
        let wanted = move |one: &&Course| contender.is_none_or(|place| one.contender == place);
        self.each.iter().filter(wanted).flat_map(|one| one.points.iter().copied())
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let from_s = self.points(None).map(|(at_s, _)| at_s).fold(f64::INFINITY, f64::min);
        let to_s = self.points(None).map(|(at_s, _)| at_s).fold(0.0, f64::max).max(from_s + 1.0);
        let high = self.points(None).map(|(_, size)| size).fold(0.0, f64::max) * 1.06;
        let plot = area.margin(Panels::height(0), FOOT - 34, 20, 20);
        let seconds = between(from_s, to_s, 9.0);
        let mut chart = ChartBuilder::on(&plot)
            .x_label_area_size(34)
            .margin_left(76)
            .build_cartesian_2d(Axis::of(from_s..to_s, seconds.iter().copied()), Axis::bare())?;
        across(&mut chart, seconds.len(), &|at| format!("{} s", tick(&three_digits(*at))))?;
        let x = |at_s: f64| chart.backend_coord(&(at_s, 0.0)).0;
        let ticks: Vec<f64> = zero_ticks(high / MIB, 3.0).into_iter().map(|size| size * MIB).collect();
        let panels = Panels { area, left: x(from_s), right: x(to_s), high };
        for (row, (place, name)) in self.names.iter().enumerate() {
            panels.name(row, name)?;
            panels.rules(row, &ticks, &|size| tick(&bytes(size as u64)))?;
            let paint = color(*place);
            for course in self.each.iter().filter(|one| one.contender == *place) {
                let line: Vec<(i32, i32)> =
                    course.points.iter().map(|(at_s, size)| (x(*at_s), panels.up(row, *size))).collect();
                area.draw(&PathElement::new(line, paint.stroke_width(1)))?;
            }
        }
        let foot = "time in the epoch, a line for each; proportional set size of the process tree";
        let under = Panels::height(self.names.len()) + FOOT - 16;
        write(area, foot, 130, &styled(15.0, MUTED, HPos::Left), (x(from_s), under))
    }
}
