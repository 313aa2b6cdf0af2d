//! Retention: how many visitors returned in later periods.

mod matrix;
mod show;

pub(super) use show::show;
