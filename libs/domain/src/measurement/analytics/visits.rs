//! The list of visits: which pages were viewed in which order.

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::filters::read_filters;
use super::periods::{RawDays, read_days};
use super::{Filter, Period, Range, Zone};
use crate::FieldError;

/// Maximum number of days of one list.
pub const WINDOW_DAYS_MAX: u64 = 7;
/// Default number of visits in a response.
pub const PAGE_DEFAULT: u32 = 50;
/// Maximum number of visits in a response.
pub const PAGE_MAX: u32 = 100;

const MIN_PAGES_DEFAULT: i64 = 2;
const PERIODS: [Period; 3] = [Period::Today, Period::Days7, Period::Custom];

/// A filter of the list: the dimension's name and the value.
pub type VisitFilter<'a> = (&'a str, &'a str);

/// The unparsed parameters of a list.
#[derive(Debug, Clone, Default)]
pub struct RawVisitsQuery<'a> {
    /// The days of the query.
    pub days: RawDays<'a>,
    /// `minPages`; 2 if absent.
    pub min_pages: Option<i64>,
    /// `limit`.
    pub limit: Option<i64>,
    /// `offset`.
    pub offset: Option<i64>,
    /// `filter.…`.
    pub filters: Vec<VisitFilter<'a>>,
}

/// A validated list query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitsQuery {
    /// Visits that overlap this interval.
    pub range: Range,
    /// Minimum number of page views of a visit.
    pub min_pages: u32,
    pub limit: u32,
    /// Number of visits to skip, newest first.
    pub offset: u32,
    pub filters: Vec<Filter>,
}

/// Parses and validates the query of a list. Returns the errors of all fields.
pub fn parse_visits_query(
    query: &RawVisitsQuery<'_>,
    now: DateTime<Utc>,
    zone: Zone,
) -> Result<VisitsQuery, Vec<FieldError>> {
    let mut errors = Vec::new();
    let days = read_days(query.days, &PERIODS, now.with_timezone(&zone).date_naive(), &mut errors);
    if let Some(days) = days.filter(|days| days.count() > WINDOW_DAYS_MAX) {
        let message = format!("visits are listed for at most {WINDOW_DAYS_MAX} days, not {}", days.count());
        errors.push(FieldError::new("to", "too_long", message));
    }
    let mut number =
        |field: &'static str, given: Option<i64>, default: i64, known: std::ops::RangeInclusive<u32>| {
            let found = u32::try_from(given.unwrap_or(default)).ok().filter(|number| known.contains(number));
            if found.is_none() {
                let message = format!("{field} must be from {} to {}", known.start(), known.end());
                errors.push(FieldError::new(field, "range", message));
            }
            found
        };
    let min_pages = number("minPages", query.min_pages, MIN_PAGES_DEFAULT, 0..=100_000);
    let limit = number("limit", query.limit, PAGE_DEFAULT.into(), 1..=PAGE_MAX);
    let offset = number("offset", query.offset, 0, 0..=100_000_000);
    let filters = read_filters("filter", query.filters.iter().copied(), None, &mut errors);
    match (days, min_pages, limit, offset) {
        (Some(days), Some(min_pages), Some(limit), Some(offset)) if errors.is_empty() => {
            Ok(VisitsQuery { range: days.range(zone), min_pages, limit, offset, filters })
        }
        _ => Err(errors),
    }
}

/// Returns the public id of a visit: stable, and unrelated to the visitor's id.
pub fn hash(site_id: Uuid, visitor: u64, start: DateTime<Utc>) -> String {
    let mut digest = Sha256::new();
    digest.update(site_id.as_bytes());
    digest.update(visitor.to_be_bytes());
    digest.update(start.timestamp_millis().to_be_bytes());
    digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
