//! The display during a race, as golden text.

use deadheat_record::VerdictWord;
use deadheat_report::Style;
use deadheat_report::live::{LiveRow, LiveState, lines, plain_line};

fn state() -> LiveState {
    let row = |name: &str, rate, ratio, low, high, verdict| LiveRow {
        name: name.into(),
        rate_per_s: Some(rate),
        is_baseline: false,
        ratio: Some(ratio),
        low: Some(low),
        high: Some(high),
        verdict,
    };
    LiveState {
        scenario: "closed-64".into(),
        epochs: 7,
        left_out: 0,
        next_look: Some(10),
        max_epochs: 30,
        doing: "epoch 8: round 12 of 40".into(),
        left_s: Some(72),
        margin: 0.03,
        rows: vec![
            LiveRow {
                name: "node".into(),
                rate_per_s: Some(11_400.0),
                is_baseline: true,
                ..LiveRow::default()
            },
            row("bun", 17_312.0, 1.52, 1.45, 1.59, Some(VerdictWord::Faster)),
            row("a contender\u{1b}[31m of a very long name", 11_420.0, 1.002, 0.96, 1.05, None),
        ],
    }
}

#[test]
fn at_80_and_160_columns() {
    let at = |width| lines(&state(), &Style { color: false, width, unicode: true }).join("\n");
    insta::assert_snapshot!(format!("{}\n{}", at(80), at(160)));
    for width in [70, 80, 99, 100, 139, 140, 200] {
        assert!(lines(&state(), &Style { color: true, width, unicode: false }).len() == 4);
        let wide = |line: &&str| unicode_width::UnicodeWidthStr::width(*line) > width;
        assert_eq!(at(width).lines().find(wide), None);
    }
}

#[test]
fn before_anything_is_known() {
    let mut state = state();
    state.rows = vec![LiveRow { name: "node".into(), ..LiveRow::default() }];
    (state.epochs, state.left_s, state.next_look) = (0, None, Some(6));
    state.doing = "warm-up".into();
    let shown = lines(&state, &Style { color: false, width: 80, unicode: true });
    assert_eq!(shown, ["closed-64  0 of at most 30 epochs, next look at 6  warm-up", "  node"]);
}

/// The runner repeats epochs in which every round was disturbed. These do not count towards the maximum.
#[test]
fn epochs_that_do_not_count_are_told_apart() {
    let state = LiveState { epochs: 3, left_out: 2, max_epochs: 3, next_look: None, left_s: None, ..state() };
    let line = plain_line(&state);
    assert!(line.starts_with("closed-64: 3 of at most 3 epochs, 2 left out: node "), "{line}");
    let shown = lines(&state, &Style { color: false, width: 120, unicode: true });
    assert_eq!(shown[0], "closed-64  3 of at most 3 epochs, 2 left out  epoch 8: round 12 of 40");
}

#[test]
fn one_line_without_a_terminal() {
    insta::assert_snapshot!(plain_line(&state()));
}
