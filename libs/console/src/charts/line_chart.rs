//! A line chart of one series and the one before it. Places are percentages, so that it has any width without a script, and
//! each point is a link with its words, which CSS shows at the pointer and the script by keyboard.

use std::fmt::Write;

use super::ticks::ticks;
use crate::formatting::visible_text::{visible, write_escaped};

const HEIGHT: f64 = 216.0;
/// Space above the lines, for the words of a point.
const TOP: f64 = 28.0;
const BASE: f64 = TOP + HEIGHT;
/// Beyond this, points are no links: a page with more of them would be too heavy.
const LINKS_MAX: usize = 120;
/// Labels of the axis at most, so that they don't overlap.
const LABELS_MAX: usize = 6;

/// A point of the chart.
#[derive(Debug, Clone, Default)]
pub(crate) struct Point {
    pub(crate) value: f64,
    /// The value of the period before.
    pub(crate) previous: Option<f64>,
    /// The label of the axis.
    pub(crate) label: String,
    /// What the point says in words.
    pub(crate) words: String,
    /// The page about this point.
    pub(crate) link: String,
}

/// An event that the chart marks.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    /// The index of its point.
    pub(crate) at: usize,
}

/// A line chart.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineChart {
    pub(crate) points: Vec<Point>,
    pub(crate) marks: Vec<Mark>,
    /// Whether the period of the last point is not over: its line is dashed.
    pub(crate) is_last_partial: bool,
    /// What the chart says while no point is chosen.
    pub(crate) summary: String,
    /// Whether the values are counts: then the ticks are whole.
    pub(crate) is_count: bool,
    /// How the axis shows a value.
    pub(crate) shown: Option<fn(f64) -> String>,
}

impl LineChart {
    /// Returns the chart as SVG. Screen readers hear the words of the points instead.
    pub(crate) fn to_svg(&self) -> String {
        let mut svg = String::with_capacity(2_048 + self.points.len() * 256);
        // Writing to memory does not fail.
        let _written = self.write(&mut svg);
        svg
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let values = self.points.iter().flat_map(|point| [Some(point.value), point.previous]);
        let (top, ticks) = ticks(values.flatten().fold(0.0, f64::max), self.is_count);
        let y = |value: f64| HEIGHT - HEIGHT * (value / top).clamp(0.0, 1.0);
        write!(out, r#"<svg class="chart" width="100%" height="272" aria-hidden="true">"#)?;
        write!(out, r#"<line class="base" x1="0" x2="100%" y1="{BASE}" y2="{BASE}"/>"#)?;
        for tick in &ticks {
            let at = TOP + y(*tick);
            write!(out, r#"<line class="grid" x1="0" x2="100%" y1="{at:.1}" y2="{at:.1}"/>"#)?;
        }
        let frame = r#"viewBox="0 0 1000 216" preserveAspectRatio="none" overflow="visible""#;
        write!(out, r#"<svg x="0" y="{TOP}" width="100%" height="{HEIGHT}" {frame}>"#)?;
        self.write_lines(out, &y)?;
        out.write_str("</svg>")?;
        let shown = self.shown.unwrap_or(|value| format!("{value}"));
        for tick in &ticks {
            write!(out, r#"<text class="y" x="0" y="{:.1}">{}</text>"#, TOP + y(*tick) - 5.0, shown(*tick))?;
        }
        self.write_labels(out)?;
        self.write_marks(out, &y)?;
        out.write_str(r#"<text class="readout" x="100%" y="12">"#)?;
        write_escaped(out, &visible(&self.summary))?;
        out.write_str("</text>")?;
        self.write_points(out, &y)?;
        out.write_str("</svg>")
    }

    /// Returns the middle of a point's column, in parts of the width.
    fn x(&self, at: usize) -> f64 {
        (at as f64 + 0.5) / self.points.len().max(1) as f64
    }

    fn write_lines(&self, out: &mut String, y: &impl Fn(f64) -> f64) -> std::fmt::Result {
        let path = |values: &[(usize, f64)]| {
            let steps = values.iter().enumerate().map(|(index, (at, value))| {
                let command = if index == 0 { 'M' } else { 'L' };
                format!("{command}{:.1} {:.1}", self.x(*at) * 1_000.0, y(*value))
            });
            steps.collect::<String>()
        };
        let values: Vec<_> = self.points.iter().map(|point| point.value).enumerate().collect();
        let previous: Vec<_> =
            self.points.iter().enumerate().filter_map(|(at, point)| Some((at, point.previous?))).collect();
        let (Some((first, _)), Some((last, _))) = (values.first(), values.last()) else { return Ok(()) };
        let (first, last) = (self.x(*first) * 1_000.0, self.x(*last) * 1_000.0);
        let line = path(&values);
        write!(out, r#"<path class="area" d="{line}L{last:.1} {HEIGHT}L{first:.1} {HEIGHT}Z"/>"#)?;
        if previous.len() > 1 {
            write!(out, r#"<path class="before" d="{}"/>"#, path(&previous))?;
        }
        let full = if self.is_last_partial { &values[..values.len() - 1] } else { &values[..] };
        write!(out, r#"<path d="{}"/>"#, path(full))?;
        if self.is_last_partial && values.len() > 1 {
            write!(out, r#"<path class="partial" d="{}"/>"#, path(&values[values.len() - 2..]))?;
        }
        Ok(())
    }

    fn write_labels(&self, out: &mut String) -> std::fmt::Result {
        let step = self.points.len().div_ceil(LABELS_MAX).max(1);
        for (index, at) in (step / 2..self.points.len()).step_by(step).enumerate() {
            let class = if index % 2 == 1 { "odd" } else { "" };
            let x = self.x(at) * 100.0;
            write!(out, r#"<text class="{class}" x="{x:.2}%" y="264" text-anchor="middle">"#)?;
            write_escaped(out, &self.points[at].label)?;
            out.write_str("</text>")?;
        }
        Ok(())
    }

    fn write_marks(&self, out: &mut String, y: &impl Fn(f64) -> f64) -> std::fmt::Result {
        for mark in &self.marks {
            let (x, Some(point)) = (self.x(mark.at) * 100.0, self.points.get(mark.at)) else { continue };
            let top = TOP + y(point.value);
            write!(out, r#"<line class="mark-line" x1="{x:.2}%" x2="{x:.2}%" y1="{top:.1}" y2="{BASE}"/>"#)?;
            write!(out, r#"<svg x="{x:.2}%" y="{BASE}" overflow="visible">"#)?;
            out.write_str(r#"<path class="mark" d="M0-5 5 4H-5Z"/></svg>"#)?;
        }
        Ok(())
    }

    fn write_points(&self, out: &mut String, y: &impl Fn(f64) -> f64) -> std::fmt::Result {
        if self.points.len() > LINKS_MAX {
            return Ok(());
        }
        let width = 100.0 / self.points.len().max(1) as f64;
        for (at, point) in self.points.iter().enumerate() {
            let (left, middle) = (at as f64 * width, self.x(at) * 100.0);
            out.write_str(r#"<a class="col" href=""#)?;
            write_escaped(out, &point.link)?;
            write!(
                out,
                r#"" tabindex="-1"><rect x="{left:.2}%" y="0" width="{width:.2}%" height="{BASE}"/>"#
            )?;
            write!(out, r#"<line x1="{middle:.2}%" x2="{middle:.2}%" y1="{TOP}" y2="{BASE}"/>"#)?;
            write!(out, r#"<circle cx="{middle:.2}%" cy="{:.1}" r="4.5"/>"#, TOP + y(point.value))?;
            out.write_str(r#"<text x="100%" y="12">"#)?;
            write_escaped(out, &visible(&point.words))?;
            out.write_str("</text></a>")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chart(values: &[f64]) -> LineChart {
        let points = values.iter().map(|value| Point {
            value: *value,
            previous: Some(value / 2.0),
            label: "1 Nov".to_owned(),
            words: "<b>\u{202e}".to_owned(),
            link: "?period=\"custom\"".to_owned(),
        });
        let is_last_partial = values.len() > 2;
        LineChart { points: points.collect(), is_last_partial, ..LineChart::default() }
    }

    #[test]
    fn words_of_strangers_stay_text() {
        let svg = chart(&[1.0, 2.0]).to_svg();
        assert!(svg.contains("&lt;b&gt;⟨U+202E⟩") && svg.contains("?period=&quot;custom&quot;"), "{svg}");
    }

    #[test]
    fn an_empty_chart_has_an_axis_and_no_line() {
        let svg = LineChart::default().to_svg();
        assert!(svg.contains("class=\"base\"") && !svg.contains("<path"), "{svg}");
    }

    proptest! {
        #[test]
        fn every_point_is_inside_the_chart(values in prop::collection::vec(0.0_f64..1e9, 1..200)) {
            let svg = chart(&values).to_svg();
            for coordinate in svg.split("cy=\"").skip(1) {
                let y: f64 = coordinate.split('"').next().unwrap().parse().unwrap();
                prop_assert!((TOP..=BASE).contains(&y), "{}", y);
            }
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
            let links = svg.matches("class=\"col\"").count();
            prop_assert_eq!(links, if values.len() > LINKS_MAX { 0 } else { values.len() });
        }
    }
}
