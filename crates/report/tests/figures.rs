//! SVG figures: golden files, well-formed with any names, and with every value in its place.

use std::collections::BTreeMap;

use crate::fixture::{Race, Racer, behind_a_cache, joined};
use deadheat_analysis::Report;
use deadheat_analysis::number::time_ns;
use deadheat_record::{Axis, End, Experiment, Record, Rung, SweepPoint};
use deadheat_report::{html, svg};
use serde_json::Value;

/// Two contenders under five loads: a ladder of two rungs, a sweep over four numbers of connections.
fn record() -> Record {
    let loads = [
        ("nothing", 30_000.0, 64),
        ("closed-16", 9_000.0, 16),
        ("closed-64", 11_400.0, 64),
        ("closed-256", 10_200.0, 256),
        ("closed-4", 4_000.0, 4),
    ];
    let each = loads.into_iter().map(|(name, rate, connections)| {
        let racers =
            vec![Racer::new("node", rate), Racer { cpu_share: 0.9, ..Racer::new("bun", 1.4 * rate) }];
        let shape = Experiment::Closed { connections };
        let mut record = Race { shape, rounds: 2, seed: u64::from(connections), ..Race::of(racers) }.record();
        let plan = &mut record.plan.scenarios[0];
        plan.sweep = name.starts_with("closed").then(|| SweepPoint {
            of: "more".into(),
            axis: Axis::Connections,
            value: f64::from(connections),
        });
        let place = [("nothing", 1), ("closed-64", 2)].into_iter().find(|(rung, _)| *rung == name);
        plan.ladder = place.map(|(_, place)| Rung { of: "request".into(), place });
        for epoch in &mut record.epochs {
            let slices = epoch.rounds.iter_mut().flat_map(|round| &mut round.slices);
            slices.for_each(|slice| slice.start_ns += 2_600_000_000);
        }
        record.epochs[1].rounds[1].dropped = Some("steal of 9 % of the round".into());
        (name.to_owned(), record)
    });
    let mut record = joined(each);
    behind_a_cache(&mut record);
    record
}

/// Five scenarios have 11 figures each, but one has too few requests for two of the cache. The pilot, ladder and sweep add three.
const FILES: usize = 5 * 11 - 2 + 3;

fn figures(document: &Report) -> BTreeMap<String, String> {
    svg(document).unwrap().into_iter().collect()
}

/// The rows of the table behind the first figure of a kind on the page.
fn rows(document: &Report, kind: &str) -> Vec<Value> {
    let page = html(document, None).unwrap();
    let (_, rest) = page.split_once("id=\"figures\">").unwrap();
    let shown: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    let of_kind = |one: &&Value| one["kind"] == kind;
    let figure = shown["figures"].as_array().unwrap().iter().find(of_kind).unwrap();
    figure["table"]["rows"].as_array().unwrap().clone()
}

/// A race that pauses at a look has alpha left for later looks, so its interval is wider than one for the whole of alpha.
#[test]
fn what_a_race_could_have_detected_is_shown_once_it_has_ended() {
    let seen = |end: Option<End>| {
        let racers = vec![Racer::new("main", 10_000.0), Racer::new("branch", 9_900.0)];
        let record = Race { noise: (0.2, 0.02), end, ..Race::of(racers) }.record();
        rows(&Report::of(&record).unwrap(), "ratios")[0][8][0].as_str().unwrap().to_owned()
    };
    assert_eq!(seen(None), "–");
    assert!(seen(Some(End::Maximum)).ends_with(" %"));
}

/// Findings name epochs by their numbers, and so do the figures if an epoch does not count.
#[test]
fn epochs_keep_their_numbers_if_one_is_left_out() {
    let mut record = Race::of(vec![Racer::new("node", 11_400.0), Racer::new("bun", 17_300.0)]).record();
    let numbers = |record: &Record| {
        let rows = rows(&Report::of(record).unwrap(), "epochs");
        rows.iter().map(|row| row[2][1].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&record), [1, 2, 3, 4, 5, 6]);
    record.epochs[1].rounds.iter_mut().for_each(|round| round.dropped = Some("steal of 9 %".into()));
    assert_eq!(numbers(&record), [1, 3, 4, 5, 6]);
}

#[test]
fn every_kind_of_figure() {
    let figures = figures(&Report::of(&record()).unwrap());
    let kinds = [
        "ratios-closed-64-throughput",
        "epochs-closed-64-throughput",
        "latency-closed-64",
        "time-closed-64",
        "warm-up-closed-64",
        "cpu-closed-64",
        "cpu-parts-closed-64",
        "memory-closed-64",
        "memory-time-closed-64",
        "cold-start-closed-64",
        "edge-cache-closed-64",
        "edge-users-closed-64",
        "ladder-request",
        "scaling-more",
    ];
    for kind in kinds {
        let figure = figures.get(&format!("{kind}.svg"));
        assert!(figure.is_some(), "{kind} is not among {:?}", figures.keys());
        insta::assert_snapshot!(kind, figure.unwrap());
    }
    assert_eq!(figures.len(), FILES, "{:?}", figures.keys());
}

#[test]
fn hostile_names_are_text_in_well_formed_files() {
    let names = [
        "<img src=x onerror=alert(1)>",
        "]]>&amp;\"'\u{ffff}\u{202e}\u{1b}[31m\u{0}",
        "</text><script>x()</script>",
    ];
    let mut record = record();
    for (one, name) in record.plan.contenders.iter_mut().zip(names) {
        one.name = name.into();
    }
    record.plan.method.baseline = names[0].into();
    for pilot in &mut record.pilots {
        pilot.contenders[0].contender = names[0].into();
    }
    for plan in &mut record.plan.scenarios {
        plan.ladder.iter_mut().for_each(|rung| rung.of = names[2].into());
        plan.sweep.iter_mut().for_each(|point| point.of = names[2].into());
    }
    let renamed = |scenario: &mut String| {
        if *scenario == "closed-64" {
            *scenario = names[2].into();
        }
    };
    record.plan.scenarios.iter_mut().for_each(|one| renamed(&mut one.name));
    record.epochs.iter_mut().for_each(|one| renamed(&mut one.scenario));
    record.pilots.iter_mut().for_each(|one| renamed(&mut one.scenario));
    record.ended.iter_mut().for_each(|(scenario, _)| renamed(scenario));
    let figures = svg(&Report::of(&record).unwrap()).unwrap();
    assert_eq!(figures.len(), FILES);
    for (file, text) in &figures {
        assert!(file.chars().all(|one| one.is_ascii_alphanumeric() || "-.".contains(one)), "{file}");
        let parsed =
            roxmltree::Document::parse(text).unwrap_or_else(|error| panic!("{file}: {error}\n{text}"));
        let known = ["svg", "title", "desc", "rect", "circle", "line", "polyline", "polygon", "text"];
        for element in parsed.descendants().filter(roxmltree::Node::is_element) {
            assert!(known.contains(&element.tag_name().name()), "{file}: {element:?}");
            assert!(!element.attributes().any(|one| one.name().starts_with("on")), "{file}: {element:?}");
        }
        let words: String =
            parsed.descendants().filter(roxmltree::Node::is_text).filter_map(|one| one.text()).collect();
        assert!(words.contains("<img src=x") || file.starts_with("warm-up"), "{file}: {words}");
        assert!(!words.contains(['\u{ffff}', '\u{202e}', '\u{1b}']), "{file}: {words}");
    }
}

#[test]
fn a_figure_says_what_it_shows_and_brings_its_own_paper() {
    let document = Report::of(&record()).unwrap();
    for (file, text) in figures(&document) {
        let parsed = roxmltree::Document::parse(&text).unwrap();
        let root = parsed.root_element();
        assert_eq!(root.attribute("role"), Some("img"), "{file}");
        let elements: Vec<_> = root.children().filter(roxmltree::Node::is_element).collect();
        let of = |at: usize| (elements[at].tag_name().name(), elements[at].text().unwrap_or_default());
        let (title, desc) = (of(0), of(1));
        assert!(title.0 == "title" && title.1.contains(':'), "{file}: {title:?}");
        assert!(desc.0 == "desc" && desc.1.len() > 20, "{file}: {desc:?}");
        // No text ends in an ellipsis or runs past the edge. Letters are about half as wide as they are high.
        for text in parsed.descendants().filter(|one| one.tag_name().name() == "text") {
            let number = |name: &str| text.attribute(name).unwrap().parse::<f64>().unwrap();
            let words = text.text().unwrap().trim();
            let wide = words.chars().count() as f64 * number("font-size") * 0.52;
            let start = text.attribute("text-anchor") == Some("start");
            assert!(!words.ends_with('…') && (!start || number("x") + wide < 960.0), "{file}: {words}");
        }
        // The background is white and opaque from edge to edge, so that the figure is legible on any page.
        let paper = elements[2];
        let side = |name: &str| paper.attribute(name).unwrap().parse::<i64>().unwrap();
        let whole = |name: &str| root.attribute(name).unwrap().parse::<i64>().unwrap();
        assert_eq!(
            (paper.attribute("fill"), paper.attribute("opacity")),
            (Some("#FFFFFF"), Some("1")),
            "{file}"
        );
        assert!(side("x") == 0 && side("y") == 0, "{file}");
        assert!(
            (side("width") - whole("width")).abs() <= 1 && (side("height") - whole("height")).abs() <= 1,
            "{file}"
        );
    }
    let figures = figures(&document);
    let bun = &document.scenarios[2].results[1];
    let said = format!("; bun: {:.1} µs</desc>", bun.cpu_us_per_request.unwrap());
    assert!(figures["cpu-closed-64.svg"].contains(&said), "{said}");
}

/// The numbers in these attributes of all elements with this name, in drawing order.
fn numbers(text: &str, element: &str, attributes: &[&str]) -> Vec<Vec<f64>> {
    let parsed = roxmltree::Document::parse(text).unwrap();
    let all = parsed.descendants().filter(|one| one.has_tag_name(("http://www.w3.org/2000/svg", element)));
    let of = |one: roxmltree::Node<'_, '_>| {
        attributes.iter().map(|name| one.attribute(*name).unwrap().parse().unwrap()).collect()
    };
    all.map(of).collect()
}

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1.5
}

/// The value of a label: times in nanoseconds, sizes in MiB.
fn value(label: &str) -> Option<f64> {
    let (number, unit) = label.split_once(' ').unwrap_or((label, ""));
    let units = [("", 1.0), ("MiB", 1.0), ("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (_, size) = units.into_iter().find(|(name, _)| *name == unit)?;
    Some(number.replace(',', "").parse::<f64>().ok()? * size)
}

/// The positions and values of an axis's labels. With the anchor `end` they are left of the axis, otherwise below it.
fn labels(text: &str, anchor: &str) -> Vec<(f64, f64)> {
    let side = if anchor == "end" { "y" } else { "x" };
    let parsed = roxmltree::Document::parse(text).unwrap();
    let texts = parsed.descendants().filter(|one| one.attribute("text-anchor") == Some(anchor));
    texts.filter_map(|one| Some((one.attribute(side)?.parse().ok()?, value(one.text()?.trim())?))).collect()
}

/// The position of a value on a linear axis, computed from the axis's first and last labels.
fn place(labels: &[(f64, f64)], value: f64) -> f64 {
    let [(from, low), (to, high)] = [labels[0], labels[labels.len() - 1]];
    from + (to - from) * (value - low) / (high - low)
}

#[test]
fn dots_stand_where_their_values_are() {
    let document = Report::of(&record()).unwrap();
    let figures = figures(&document);
    let scenario = &document.scenarios[2];
    let of = |value: &dyn Fn(&deadheat_analysis::EpochFigures) -> f64, file: &str| {
        let values = scenario.results.iter().flat_map(|one| &one.epochs).map(value);
        let dots = numbers(&figures[file], "circle", &["cx", "cy"]);
        let labels = labels(&figures[file], "middle");
        assert!(dots.len() == 12 && labels.len() > 2, "{file}: {labels:?}");
        for (dot, value) in dots.iter().zip(values) {
            assert!(near(dot[0], place(&labels, value)), "{file}: {dot:?} for {value}");
        }
        // The dots are in time order, from top to bottom.
        assert!(dots[..6].is_sorted_by(|one, next| one[1] < next[1]), "{file}: {dots:?}");
    };
    of(&|epoch| epoch.cpu_us_per_request.unwrap() * 1e3, "cpu-closed-64.svg");
    of(&|epoch| epoch.cold_start_ns as f64, "cold-start-closed-64.svg");
    let pair = &scenario.comparisons[0];
    let dots = numbers(&figures["epochs-closed-64-throughput.svg"], "circle", &["cx"]);
    assert_eq!(dots.len(), pair.epoch_ratios.len());
    let (one, other) = (pair.epoch_ratios[0].ln(), pair.epoch_ratios[3].ln());
    let steps = numbers(&figures["epochs-closed-64-throughput.svg"], "polyline", &[]);
    assert!(!steps.is_empty() && (one > other) == (dots[0][0] > dots[3][0]), "{dots:?}");
}

#[test]
fn slices_stand_at_their_time_and_rate() {
    let document = Report::of(&record()).unwrap();
    let figure = &figures(&document)["time-closed-64.svg"];
    let (seconds, rates) = (labels(figure, "middle"), labels(figure, "end"));
    let panels: Vec<_> = rates.chunks(rates.len() / 2).collect();
    let (mut from_s, mut wanted) = (0.0, Vec::new());
    for epoch in document.record.epochs_of("closed-64") {
        for round in epoch.rounds.iter().filter(|round| round.dropped.is_none()) {
            for slice in &round.slices {
                let at_s = from_s + (slice.start_ns as f64 + slice.elapsed_ns as f64 / 2.0) / 1e9;
                let y = place(panels[slice.contender], slice.rate_per_s.unwrap());
                wanted.push((slice.contender, place(&seconds, at_s * 1e9), y));
            }
        }
        from_s += epoch.took_ns as f64 / 1e9;
    }
    wanted.sort_by_key(|(contender, ..)| *contender);
    let circles = numbers(figure, "circle", &["cx", "cy"]);
    assert_eq!(circles.len(), wanted.len());
    for (circle, (_, x, y)) in circles.iter().zip(&wanted) {
        assert!(near(circle[0], *x) && near(circle[1], *y), "{circle:?} for {x}, {y}");
    }
    assert!(figure.contains("Crosses: rounds that were left out"));
    // A cross is two lines, and one round with two contenders was left out.
    let crosses = numbers(figure, "line", &["x1"]).len();
    assert!(crosses >= 4, "{crosses}");
}

#[test]
fn memory_stands_at_its_time_and_size() {
    let document = Report::of(&record()).unwrap();
    let figure = &figures(&document)["memory-time-closed-64.svg"];
    let parsed = roxmltree::Document::parse(figure).unwrap();
    // Lines of this grey are rules.
    let drawn = parsed.descendants().filter(|one| one.attribute("stroke") != Some("#DCD8D0"));
    let lines: Vec<Vec<(f64, f64)>> = drawn
        .filter_map(|one| one.attribute("points"))
        .map(|points| {
            let pairs = points.split_whitespace().map(|pair| pair.split_once(',').unwrap());
            pairs.map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).collect()
        })
        .collect();
    let epochs: Vec<_> = document.record.epochs_of("closed-64").collect();
    let courses = (0..2).flat_map(|contender| {
        epochs.iter().map(move |epoch| (contender, &epoch.of(contender).unwrap().usage.memory))
    });
    assert_eq!(lines.len(), 2 * epochs.len());
    let (seconds, sizes) = (labels(figure, "middle"), labels(figure, "end"));
    let panels: Vec<_> = sizes.chunks(sizes.len() / 2).collect();
    for (line, (contender, course)) in lines.iter().zip(courses) {
        assert_eq!((line.len(), course.len()), (3, 3));
        for ((x, y), point) in line.iter().zip(course) {
            let wanted_x = place(&seconds, point.at_ns as f64);
            let wanted_y = place(panels[contender], point.pss_bytes as f64 / f64::from(1 << 20));
            assert!(near(*x, wanted_x) && near(*y, wanted_y), "{x}, {y} for {wanted_x}, {wanted_y}");
        }
    }
    assert!(figure.contains("node: 56.0 MiB to 70.0 MiB; bun: "), "{figure}");
}

#[test]
fn every_logarithmic_axis_of_times_has_labels() {
    let document = Report::of(&record()).unwrap();
    let mut count = 0;
    for (file, text) in figures(&document) {
        // Only labels of this axis have this anchor: latencies are left of their rules, and users' times are below them.
        let anchor = match &file {
            one if one.starts_with("latency-") || one.starts_with("edge-cache-") => "end",
            one if one.starts_with("edge-users-") => "middle",
            _ => continue,
        };
        let parsed = roxmltree::Document::parse(&text).unwrap();
        let labels = parsed.descendants().filter(|one| one.attribute("text-anchor") == Some(anchor));
        let labels: Vec<&str> = labels.map(|one| one.text().unwrap().trim()).collect();
        let times =
            labels.iter().all(|one| one.ends_with('s') && one.starts_with(|c: char| c.is_ascii_digit()));
        assert!(labels.len() >= 3 && times, "{file}: {labels:?}");
        count += 1;
    }
    assert_eq!(count, 5 + 2 * 4);
}

#[test]
fn parts_of_a_ladder_are_as_wide_as_what_they_add() {
    let document = Report::of(&record()).unwrap();
    let figure = &figures(&document)["ladder-request.svg"];
    let bars: Vec<Vec<f64>> =
        numbers(figure, "rect", &["x", "width", "height"]).into_iter().filter(|bar| bar[2] == 24.0).collect();
    let steps: Vec<f64> =
        document.ladders[0].contenders.iter().flat_map(|one| &one.steps).map(|step| step.added_us).collect();
    // Each part has two rectangles: its fill and its white edge.
    assert_eq!((bars.len(), steps.len()), (8, 4));
    let labels = labels(figure, "middle");
    for (bar, added) in bars.iter().step_by(2).zip(&steps) {
        let wanted = place(&labels, added * 1e3) - place(&labels, 0.0);
        assert!(near(bar[1], wanted), "{bar:?} for {added}");
    }
    assert!(near(bars[0][0] + bars[0][1], bars[2][0]), "one behind the other");

    // Who did not get to the last rung has no time on it.
    let mut fallen = document.clone();
    let last = fallen.ladders[0].contenders[0].steps.pop().unwrap();
    let said = time_ns(last.time_us * 1e3);
    let shown = |document: &Report| figures(document)["ladder-request.svg"].clone();
    let first = time_ns(fallen.ladders[0].contenders[0].steps[0].time_us * 1e3);
    let count =
        |document: &Report, text: &str| shown(document).lines().filter(|line| line.trim() == text).count();
    assert_eq!(count(&fallen, &said) + 1, count(&document, &said), "{said}");
    assert_eq!((count(&fallen, &first), count(&fallen, "–")), (count(&document, &first), 1), "{first}");
}
