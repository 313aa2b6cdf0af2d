//! Counts by status over time, as stacked bars without an axis.

use std::fmt::Write;

/// The part of a column that its bar fills.
const FILLED: f64 = 0.84;

/// Returns a column for each time, the oldest first, as SVG. `classes` are those of the statuses, from the bottom up. Hidden
/// from screen readers: the words beside it say the sums.
pub(crate) fn status_strip<const STATUSES: usize>(
    columns: &[[u32; STATUSES]],
    classes: [&str; STATUSES],
) -> String {
    let max = columns.iter().map(|column| column.iter().sum::<u32>()).max().unwrap_or(0).max(1);
    let width = 100.0 / columns.len().max(1) as f64;
    let mut svg = String::from(r#"<svg class="strip" aria-hidden="true">"#);
    let mut bar = |class: &str, at: usize, y: f64, height: f64| {
        let (x, filled) = (at as f64 * width, width * FILLED);
        // Writing to memory does not fail.
        let _written = write!(
            svg,
            r#"<rect class="{class}" x="{x:.2}%" y="{y:.1}%" width="{filled:.2}%" height="{height:.1}%"/>"#
        );
    };
    for (at, column) in columns.iter().enumerate() {
        let mut y = 100.0;
        for (count, class) in column.iter().zip(classes).filter(|(count, _)| **count > 0) {
            let height = f64::from(*count) / f64::from(max) * 100.0;
            y -= height;
            bar(class, at, y.max(0.0), height);
        }
        if column.iter().all(|count| *count == 0) {
            bar("none", at, 95.0, 5.0);
        }
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_stacked_and_empty_columns_stay_visible() {
        let svg = status_strip(&[[3, 1], [0, 0], [0, 2]], ["good", "bad"]);
        for bar in [
            r#"<rect class="good" x="0.00%" y="25.0%" width="28.00%" height="75.0%"/>"#,
            r#"<rect class="bad" x="0.00%" y="0.0%" width="28.00%" height="25.0%"/>"#,
            r#"<rect class="none" x="33.33%" y="95.0%""#,
            r#"<rect class="bad" x="66.67%" y="50.0%""#,
        ] {
            assert!(svg.contains(bar), "{svg}");
        }
        assert_eq!(status_strip::<1>(&[], ["x"]), r#"<svg class="strip" aria-hidden="true"></svg>"#);
    }
}
