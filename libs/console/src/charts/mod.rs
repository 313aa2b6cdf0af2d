//! Charts as SVG made on the server: numbers in, markup out. Pure functions.

mod line_chart;
mod sparkline;
mod status_strip;
mod ticks;

pub(crate) use line_chart::{LineChart, Mark, Point};
pub(crate) use sparkline::sparkline;
pub(crate) use status_strip::status_strip;
