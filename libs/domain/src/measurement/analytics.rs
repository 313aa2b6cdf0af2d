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
mod drop_off;
mod filters;
mod funnels;
mod metric_query;
mod metric_value;
mod metrics;
mod overview;
mod periods;
#[cfg(test)]
mod tests;
mod visits;
mod zones;

pub use buckets::{BUCKETS_MAX, Bucket, Grouping};
pub use cohorts::{
    COHORTS_MAX, Cohort, Granularity, RawRetentionQuery, RetentionQuery, ReturnCount, fill_cohorts,
    mean_retention, parse_retention_query, retention_hint,
};
pub use dimensions::{Dimension, NONE, Subject};
pub use drop_off::{
    DropOffQuery, NEXT_PAGES_DEFAULT, NEXT_PAGES_MAX, NextPage, RawDropOffQuery, next_pages,
    parse_drop_off_query,
};
pub use filters::{FILTERS_MAX, Filter, VALUE_CHARS_MAX};
pub use funnels::{
    FunnelQuery, FunnelStepResult, RawFunnelQuery, RawFunnelStep, STEPS_MAX, STEPS_MIN, Step, fill_steps,
    parse_funnel_query,
};
pub use metric_query::{LIMIT_DEFAULT, LIMIT_MAX, MetricQuery, RawMetricQuery, parse_metric_query};
pub use metric_value::{MetricValue, Sums, change_percent, percent};
pub use metrics::{ACTIVE_FOR, Metric};
pub use overview::{
    OVERVIEW_METRICS, OVERVIEW_PANELS, OverviewPanel, OverviewQuery, RawOverviewQuery, parse_overview_query,
};
pub use periods::{Days, Period, Range, RawDays};
pub use visits::{
    PAGE_DEFAULT, PAGE_MAX, RawVisitsQuery, VisitFilter, VisitsQuery, WINDOW_DAYS_MAX, hash,
    parse_visits_query,
};
pub use zones::{Zone, parse_zone, start_of_day};

pub use crate::visitors::Lifetime;
