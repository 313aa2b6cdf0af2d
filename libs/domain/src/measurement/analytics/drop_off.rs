//! Drop-off: where visits went that left a funnel before one of its steps.
//!
//! These visits completed all steps before that one, and not that one. Their next page is the first one that they viewed, within
//! the period, at a later millisecond than that in which they had completed the steps before.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::funnels::{FunnelQuery, RawFunnelQuery, parse_funnel_query};
use super::{Zone, percent};
use crate::FieldError;

/// Default number of pages in a response.
pub const NEXT_PAGES_DEFAULT: u32 = 10;
/// Maximum number of pages in a response.
pub const NEXT_PAGES_MAX: u32 = 100;

/// The first step with a drop-off: before the first one, a visit is in no funnel.
const FIRST_DROP_OFF_STEP: usize = 2;

/// The unparsed parameters of a query.
#[derive(Debug, Clone)]
pub struct RawDropOffQuery<'a> {
    /// The funnel.
    pub funnel: RawFunnelQuery<'a>,
    /// `step`.
    pub step: i64,
    /// `limit`.
    pub limit: Option<i64>,
}

/// A validated query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropOffQuery {
    /// The funnel.
    pub funnel: FunnelQuery,
    /// Number of steps that the visits completed: all before the one that they did not complete.
    pub completed: usize,
    /// Maximum number of pages.
    pub limit: u32,
}

/// A page that visits viewed next.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NextPage {
    /// Path of the page.
    pub page: String,
    /// Visits that viewed it next.
    pub visits: u64,
    /// Percentage of all visits that left before the step.
    pub rate: f64,
}

/// Parses and validates a query. Returns the errors of all fields.
pub fn parse_drop_off_query(
    query: &RawDropOffQuery<'_>,
    now: DateTime<Utc>,
    zone: Zone,
) -> Result<DropOffQuery, Vec<FieldError>> {
    let (funnel, mut errors) = match parse_funnel_query(&query.funnel, now, zone) {
        Ok(funnel) => (Some(funnel), vec![]),
        Err(errors) => (None, errors),
    };
    let last = query.funnel.steps.len().max(FIRST_DROP_OFF_STEP);
    let step = usize::try_from(query.step).ok().filter(|step| (FIRST_DROP_OFF_STEP..=last).contains(step));
    if step.is_none() {
        let message = format!(
            "step must be the number of a step from {FIRST_DROP_OFF_STEP} to {last}, not {}",
            query.step
        );
        errors.push(FieldError::new("step", "range", message));
    }
    let limit = query.limit.unwrap_or(NEXT_PAGES_DEFAULT.into());
    let limit = u32::try_from(limit).ok().filter(|limit| (1..=NEXT_PAGES_MAX).contains(limit));
    if limit.is_none() {
        errors.push(FieldError::new("limit", "range", format!("limit must be from 1 to {NEXT_PAGES_MAX}")));
    }
    match (funnel, step, limit) {
        (Some(funnel), Some(step), Some(limit)) => Ok(DropOffQuery { funnel, completed: step - 1, limit }),
        _ => Err(errors),
    }
}

/// Returns the pages with their share of all visits that left. `pages` are paths with their number of visits.
pub fn next_pages(pages: Vec<(String, u64)>, left: u64) -> Vec<NextPage> {
    let page = |(page, visits)| NextPage { page, visits, rate: percent(visits, left) };
    pages.into_iter().map(page).collect()
}

#[cfg(test)]
mod tests {
    use super::super::funnels::RawFunnelStep;
    use super::super::periods::RawDays;
    use super::*;

    fn parse(steps: usize, step: i64, limit: Option<i64>) -> Result<(usize, u32), Vec<String>> {
        let steps = vec![RawFunnelStep { event: "page_view", filters: vec![] }; steps];
        let funnel = RawFunnelQuery { steps, days: RawDays::new(Some("7d"), None, None) };
        parse_drop_off_query(&RawDropOffQuery { funnel, step, limit }, DateTime::UNIX_EPOCH, Zone::UTC)
            .map(|query| (query.completed, query.limit))
            .map_err(|errors| errors.into_iter().map(|error| error.field).collect())
    }

    #[test]
    fn a_visit_leaves_before_any_step_but_the_first() {
        assert_eq!(parse(3, 2, None), Ok((1, 10)));
        assert_eq!(parse(3, 3, Some(100)), Ok((2, 100)));
        for step in [i64::MIN, 0, 1, 4, i64::MAX] {
            assert_eq!(parse(3, step, None), Err(vec!["step".to_owned()]), "{step}");
        }
    }

    #[test]
    fn errors_of_the_funnel_are_reported_with_its_own() {
        assert_eq!(parse(1, 3, Some(0)), Err(["steps", "step", "limit"].map(str::to_owned).to_vec()));
        assert_eq!(parse(6, 6, Some(101)), Err(["steps", "limit"].map(str::to_owned).to_vec()));
    }
}
