//! Numbers, times, foreign text and differences of texts, as pages show them. Pure functions.

pub(crate) mod line_diff;
pub(crate) mod numbers;
pub(crate) mod times;
pub(crate) mod visible_text;
