//! Ratios with their intervals and epochs around 1.
//!
//! Owns how a comparison is drawn. Must not know how it came about.

use deadheat_record::{Comparison, Metric, ScenarioResult, VerdictWord};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::canvas::{Area, Axis, BAND, Drawn, INK, MUTED, RULE, SERIES, WIDTH, styled};
use crate::number::{interval, ratio, ratio_decimals};
use crate::terminal::{metric_title, verdict};
use crate::text::{plain, shorten_end};

fn color(one: &Comparison) -> RGBColor {
    match one.verdict {
        _ if one.negligible => SERIES[7],
        VerdictWord::Faster => SERIES[2],
        VerdictWord::Slower => SERIES[1],
        VerdictWord::Equivalent | VerdictWord::Inconclusive | VerdictWord::Invalid => SERIES[7],
    }
}

pub(super) fn ratios(
    area: &Area<'_>,
    scenario: &ScenarioResult,
    metric: Metric,
    pairs: &[&Comparison],
    margin: f64,
) -> Drawn {
    let title = format!("{}: {}, contender / baseline", plain(&scenario.name), metric_title(metric));
    area.draw_text(&shorten_end(&title, 90, "…"), &styled(20.0, INK, HPos::Left), (20, 26))?;
    let known = |one: &&Comparison| [one.low, one.ratio, one.high].into_iter().flatten().collect::<Vec<_>>();
    let all: Vec<f64> =
        pairs.iter().flat_map(|one| known(one).into_iter().chain(one.epoch_ratios.iter().copied())).collect();
    let low = all.iter().copied().fold(1.0 / (1.0 + margin), f64::min) / 1.02;
    let high = all.iter().copied().fold(1.0 + margin, f64::max) * 1.02;
    let ticks = ticks(low, high);
    let plot = area.margin(48, 12, 20, 20);
    let rows = pairs.len() as f64;
    let mut chart = ChartBuilder::on(&plot)
        .x_label_area_size(34)
        .margin_left(210)
        .margin_right(250)
        .build_cartesian_2d(Axis::of(low.ln()..high.ln(), ticks.iter().map(|tick| tick.ln())), rows..0.0)?;
    let band = [((1.0 / (1.0 + margin)).ln(), 0.0), ((1.0 + margin).ln(), rows)];
    chart.draw_series([Rectangle::new(band, BAND.filled())])?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RULE)
        .axis_style(RULE)
        .x_labels(ticks.len())
        .x_label_style(styled(15.0, MUTED, HPos::Center))
        .x_label_formatter(&|at| ratio(at.exp(), 2))
        .draw()?;
    chart.draw_series([PathElement::new([(0.0, 0.0), (0.0, rows)], INK)])?;
    for (row, one) in pairs.iter().enumerate() {
        let (y, paint) = (row as f64 + 0.36, color(one));
        let epochs = one
            .epoch_ratios
            .iter()
            .map(|each| Circle::new((each.ln(), y + 0.34), 3, paint.mix(0.55).filled()));
        chart.draw_series(epochs)?;
        if let (Some(low), Some(high)) = (one.low, one.high) {
            chart.draw_series([PathElement::new([(low.ln(), y), (high.ln(), y)], paint.stroke_width(3))])?;
        }
        if let Some(ratio) = one.ratio {
            chart.draw_series([Circle::new((ratio.ln(), y), 6, paint.filled())])?;
        }
        let (_, middle) = chart.backend_coord(&(0.0, y + 0.1));
        label(area, one, middle)?;
    }
    Ok(())
}

/// What stands left and right of a row.
fn label(area: &Area<'_>, one: &Comparison, y: i32) -> Drawn {
    let pair = format!("{} / {}", plain(&one.contender), plain(&one.baseline));
    area.draw_text(&shorten_end(&pair, 28, "…"), &styled(16.0, INK, HPos::Right), (222, y))?;
    let decimals = ratio_decimals(one.low, one.high);
    let value = one.ratio.map_or_else(String::new, |value| ratio(value, decimals));
    let said = format!("{value} ({}) {}", interval(one.low, one.high), verdict(one.verdict).0);
    area.draw_text(&said, &styled(16.0, MUTED, HPos::Left), (WIDTH as i32 - 258, y))?;
    Ok(())
}

/// Round ratios from `low` to `high`, some six of them.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    if high / low > 4.0 {
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
        return all.filter(|one| (low..=high).contains(one)).collect();
    }
    let steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
    let step = steps.into_iter().find(|step| (high - low) / step <= 7.0).unwrap_or(1.0);
    let first = (low / step).ceil() as i64;
    (first..).map(|at| at as f64 * step).take_while(|one| *one <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let shown = |low, high| ticks(low, high).iter().map(|one| ratio(*one, 2)).collect::<Vec<_>>();
        assert_eq!(shown(0.93, 1.12), ["0.95", "1.00", "1.05", "1.10"]);
        assert_eq!(shown(0.4, 12.0), ["0.50", "1.00", "2.00", "5.00", "10.0"]);
    }
}
