//! Funnels: how many visits completed a series of steps, and where the others left.

mod drop_off_step;
mod show;
mod steps;

pub(super) use show::show;
