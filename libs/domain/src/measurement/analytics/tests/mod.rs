//! Tests of analytics queries.

mod answers;
mod days;
mod overview;
mod queries;
mod retention;

use chrono::{DateTime, NaiveDate, Utc};

use super::{RawDays, Zone};
use crate::FieldError;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn zone(name: &str) -> Zone {
    name.parse().unwrap()
}

/// Returns 21 November 2026, 10:00 UTC.
fn now() -> DateTime<Utc> {
    at("2026-11-21T10:00:00Z")
}

fn recent_days(period: &str) -> RawDays<'_> {
    RawDays::new(Some(period), None, None)
}

fn custom_days<'a>(from: &'a str, to: &'a str) -> RawDays<'a> {
    RawDays::new(Some("custom"), Some(from), Some(to))
}

/// Returns the invalid fields and the broken rules.
fn invalid<T: std::fmt::Debug>(read: Result<T, Vec<FieldError>>) -> Vec<(String, &'static str)> {
    read.unwrap_err().into_iter().map(|error| (error.field, error.code)).collect()
}

fn errors(expected: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    expected.iter().map(|(field, code)| ((*field).to_owned(), *code)).collect()
}
