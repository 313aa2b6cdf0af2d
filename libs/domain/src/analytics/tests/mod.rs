//! Questions read, days cut, figures made.

mod answers;
mod days;
mod questions;
mod returns;

use chrono::{DateTime, NaiveDate, Utc};

use super::Zone;
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

/// 21 November 2026, 10:00 in UTC.
fn now() -> DateTime<Utc> {
    at("2026-11-21T10:00:00Z")
}

/// Which fields are wrong, and by which rule.
fn wrong<T: std::fmt::Debug>(read: Result<T, Vec<FieldError>>) -> Vec<(String, &'static str)> {
    read.unwrap_err().into_iter().map(|error| (error.field, error.code)).collect()
}

fn said(expected: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    expected.iter().map(|(field, code)| ((*field).to_owned(), *code)).collect()
}
