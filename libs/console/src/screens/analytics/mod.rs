//! Visits of a site: figures compared with the period before, a chart, and what they consist of.

mod chart;
mod figures;
mod filters;
mod panels;
mod period;
mod show;
mod sites;

pub(crate) use show::{add_filter, count_active, show};
pub(crate) use sites::list;
