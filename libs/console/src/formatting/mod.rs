//! Numbers, times and foreign text, as pages show them. Pure functions.

pub(crate) mod numbers;
pub(crate) mod times;
pub(crate) mod visible_text;
