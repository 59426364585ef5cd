//! A ratio's interval drawn as a small line around 1.
//!
//! Owns: the position of a ratio on the line (log scale). Must not know: what is compared.

use crate::style::Style;

/// Minimum width of a terminal at which intervals are also drawn.
pub(crate) const DRAWN_FROM: usize = 100;

/// The scale that all bars of one table share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bar {
    /// Width in columns: an odd number, so that 1 is exactly in the middle column.
    pub(crate) columns: usize,
    /// ln of the ratio at either end.
    pub(crate) reach: f64,
    /// ln(1 + margin).
    pub(crate) margin: f64,
}

impl Bar {
    /// A scale that includes all these ratios and the margin.
    pub(crate) fn around(ratios: impl Iterator<Item = f64>, margin: f64, columns: usize) -> Self {
        let margin = margin.ln_1p();
        let far = ratios.filter(|ratio| *ratio > 0.0 && ratio.is_finite()).map(|ratio| ratio.ln().abs());
        Self { columns: columns | 1, reach: far.fold(margin * 1.5, f64::max), margin }
    }

    fn place(&self, ln: f64) -> usize {
        let half = (self.columns / 2) as f64;
        (half + (ln / self.reach * half).round().clamp(-half, half)) as usize
    }
}

/// The interval as `├──●──┤`, over a line that marks 1 and the margin. An unknown end reaches the edge.
pub(crate) fn bar(
    scale: &Bar,
    low: Option<f64>,
    ratio: Option<f64>,
    high: Option<f64>,
    style: &Style,
) -> String {
    let [one, margin, left, line, right, dot] = if style.unicode {
        ['│', '┊', '├', '─', '┤', '●']
    } else {
        ['|', ':', '[', '-', ']', 'o']
    };
    let mut cells = vec![' '; scale.columns];
    cells[scale.place(-scale.margin)] = margin;
    cells[scale.place(scale.margin)] = margin;
    cells[scale.place(0.0)] = one;
    if let Some(ratio) = ratio.filter(|ratio| *ratio > 0.0) {
        if low.is_some() || high.is_some() {
            let low = low.map_or(0, |low| scale.place(low.ln()));
            let high = high.map_or(scale.columns - 1, |high| scale.place(high.ln()));
            cells[low..=high].fill(line);
            (cells[low], cells[high]) = (left, right);
        }
        cells[scale.place(ratio.ln())] = dot;
    }
    cells.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { color: false, width: 80, unicode: true };

    #[test]
    fn drawn_around_one_with_the_margin() {
        let scale = Bar::around([1.10, 0.95].into_iter(), 0.03, 21);
        let drawn = |low, ratio, high| bar(&scale, low, ratio, high, &STYLE);
        assert_eq!(drawn(Some(1.05), Some(1.07), Some(1.10)), "       ┊  │  ┊ ├─●──┤");
        assert_eq!(drawn(Some(0.98), Some(1.0), Some(1.02)), "       ┊├─●─┤┊       ");
        assert_eq!(drawn(None, None, None), "       ┊  │  ┊       ");
        assert_eq!(drawn(Some(0.5), Some(0.9), None), "●───────────────────┤");
        let ascii = Style { unicode: false, ..STYLE };
        assert_eq!(bar(&scale, Some(1.05), Some(1.07), Some(1.10), &ascii), "       :  |  : [-o--]");
    }
}
