//! Funnels: how many visits completed each step, and where the others left.
//!
//! A visit completes a step if it has, within the period, different events for that step and all steps before it, in
//! order of time; other events may lie between. Each visit counts on its own: a visitor who does the first step today
//! and the second tomorrow has not completed the funnel.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::filters::read_filters;
use super::periods::{RawDays, read_days};
use super::{Filter, Period, Range, Zone, percent};
use crate::field_error::check_length;
use crate::tracking::NAME_CHARS_MAX;
use crate::{FieldError, tracking};

/// Minimum number of steps.
pub const STEPS_MIN: usize = 2;
/// Maximum number of steps.
pub const STEPS_MAX: usize = 5;

/// The unparsed parameters of a step.
#[derive(Debug, Clone)]
pub struct RawFunnelStep<'a> {
    /// `event`.
    pub event: &'a str,
    /// `filters`.
    pub filters: Vec<(&'a str, &'a str)>,
}

/// The unparsed parameters of a funnel query.
#[derive(Debug, Clone)]
pub struct RawFunnelQuery<'a> {
    /// `steps`.
    pub steps: Vec<RawFunnelStep<'a>>,
    /// The days of the query.
    pub days: RawDays<'a>,
}

/// A validated funnel query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunnelQuery {
    /// Interval of the events.
    pub range: Range,
    pub steps: Vec<Step>,
}

/// The condition on an event that completes the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Name of the event.
    pub event: String,
    /// Further conditions: `url` applies to the event's own page, all others to its visitor and visit.
    pub filters: Vec<Filter>,
}

/// Result of one step.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunnelStepResult {
    /// Event of the step.
    pub name: String,
    /// Visits that completed it.
    pub count: u64,
    /// Percentage of the visits that completed the first step.
    pub rate: f64,
    /// Percentage of the visits of the previous step that did not complete this one; 0 for the first.
    pub drop_off: f64,
}

/// Parses and validates a funnel query. Returns the errors of all fields.
pub fn parse_funnel_query(
    query: &RawFunnelQuery<'_>,
    now: DateTime<Utc>,
    zone: Zone,
) -> Result<FunnelQuery, Vec<FieldError>> {
    let mut errors = Vec::new();
    if !(STEPS_MIN..=STEPS_MAX).contains(&query.steps.len()) {
        let message = format!("steps must be from {STEPS_MIN} to {STEPS_MAX}, not {}", query.steps.len());
        errors.push(FieldError::new("steps", "count", message));
    }
    let mut steps = Vec::new();
    for (index, step) in query.steps.iter().enumerate().take(STEPS_MAX) {
        let path = format!("steps[{index}]");
        check_event(&format!("{path}.event"), step.event, &mut errors);
        let filters = step.filters.iter().copied();
        let filters = read_filters(&format!("{path}.filters"), filters, None, &mut errors);
        steps.push(Step { event: step.event.to_owned(), filters });
    }
    let days = read_days(query.days, &Period::ALL, now.with_timezone(&zone).date_naive(), &mut errors);
    match days {
        Some(days) if errors.is_empty() => Ok(FunnelQuery { range: days.range(zone), steps }),
        _ => Err(errors),
    }
}

/// Validates the name of an event, which can't be an engagement report.
pub(super) fn check_event(field: &str, name: &str, errors: &mut Vec<FieldError>) {
    check_length(errors, field, name, 1, NAME_CHARS_MAX);
    if name == tracking::ENGAGEMENT {
        let message = format!("{field}: `{name}` is reserved for reports of engagement time");
        errors.push(FieldError::new(field, "reserved", message));
    }
}

/// Returns the result of each step, and the percentage of the first step's visits that completed the last one.
/// `reached` is the number of visits that completed each step; a missing number is 0.
pub fn fill_steps(steps: &[Step], reached: &[u64]) -> (Vec<FunnelStepResult>, f64) {
    let count_of = |index: usize| reached.get(index).copied().unwrap_or_default();
    let first = count_of(0);
    let figures = steps.iter().enumerate().map(|(index, step)| {
        let (count, before) = (count_of(index), count_of(index.saturating_sub(1)));
        FunnelStepResult {
            name: step.event.clone(),
            count,
            rate: percent(count, first),
            drop_off: percent(before.saturating_sub(count), before),
        }
    });
    (figures.collect(), percent(count_of(steps.len().saturating_sub(1)), first))
}
