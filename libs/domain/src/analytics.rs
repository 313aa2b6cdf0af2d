//! Analytics queries: parameters, periods, dimensions, and the computation of metrics from counts.
//!
//! Everything here is pure. The warehouse receives a validated query and returns counts ([`Sums`]); metrics are
//! computed from them here, once, so that totals, rows and buckets never disagree.
//!
//! Periods are whole calendar days in the site's time zone: `7d` is today and the six days before. They become
//! half-open intervals in UTC here, so no other code handles days of 23 or 25 hours.

mod buckets;
mod cohorts;
mod dimensions;
mod figures;
mod filters;
mod funnels;
mod metrics;
mod periods;
mod questions;
#[cfg(test)]
mod tests;
mod visits;
mod zones;

pub use buckets::{BUCKETS_MAX, Bucket, Grouping};
pub use cohorts::{
    AskedRetention, COHORTS_MAX, Cohort, Granularity, Retention, Returns, fill_cohorts, hint_for,
    mean_retention, read_retention,
};
pub use dimensions::{Dimension, NONE, Subject};
pub use figures::{Figure, Sums, change_percent, percent};
pub use filters::{FILTERS_MAX, Filter, VALUE_CHARS_MAX};
pub use funnels::{
    AskedFunnel, AskedStep, Funnel, STEPS_MAX, STEPS_MIN, Step, StepFigures, fill_steps, read_funnel,
};
pub use metrics::{ACTIVE_FOR, Metric};
pub use periods::{Days, Period, Range};
pub use questions::{Asked, LIMIT_DEFAULT, LIMIT_MAX, Question, read_question};
pub use visits::{
    AskedVisits, PAGE_DEFAULT, PAGE_MAX, VisitFilter, Visits, WINDOW_DAYS_MAX, hash, read_visits,
};
pub use zones::{Zone, read_zone, start_of_day};

pub use crate::visitors::Lifetime;
