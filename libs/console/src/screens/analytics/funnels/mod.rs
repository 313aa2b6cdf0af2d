//! Funnels: how many visits completed a series of steps, and where the others left.

mod left;
mod show;
mod steps;

pub(super) use show::show;
