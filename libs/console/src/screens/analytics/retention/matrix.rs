//! The matrix of cohorts: which cells are known, which are still running, and which can't be known.

use chrono::{Datelike, Months, NaiveDate, TimeDelta};
use serde::Serialize;
use serde_json::Value;

use crate::formatting::numbers;
use crate::formatting::times::Wall;

/// A row of the matrix.
#[derive(Debug, Serialize)]
pub(super) struct CohortView {
    label: String,
    total: f64,
    cells: Vec<Cell>,
}

/// A cell of the matrix.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Cell {
    text: String,
    /// The strength of its colour, from 0 to 5.
    level: usize,
    /// Whether its period is not over.
    is_running: bool,
    /// Whether ids of visitors changed in between, so that returns can't be recognized.
    is_unknown: bool,
}

/// The matrix.
#[derive(Debug, Serialize)]
pub(super) struct Matrix {
    cohorts: Vec<CohortView>,
    /// Periods after the first: `1`, `2` and so on.
    columns: Vec<usize>,
    average: Vec<String>,
    has_unknown: bool,
    has_running: bool,
    /// Visitors of all cohorts.
    pub(super) total: f64,
}

/// Returns the matrix of an answer.
pub(super) fn matrix(answer: &Value, granularity: &str, wall: Wall) -> Matrix {
    let rows = || answer["cohorts"].as_array().into_iter().flatten();
    let cohorts: Vec<_> = rows().filter_map(|row| cohort(row, granularity, wall)).collect();
    // Columns that are in the future for every cohort are left out.
    let width = cohorts.iter().map(|cohort| cohort.cells.len()).max().unwrap_or_default();
    // Cells of empty cohorts are not shown.
    let cells = || cohorts.iter().filter(|cohort| cohort.total > 0.0).flat_map(|cohort| &cohort.cells);
    let average = answer["averageRetention"].as_array().into_iter().flatten().take(width);
    Matrix {
        columns: (0..width).collect(),
        average: average.map(|mean| mean.as_f64().map_or("?".to_owned(), numbers::percent)).collect(),
        has_unknown: cells().any(|cell| cell.is_unknown),
        has_running: cells().any(|cell| cell.is_running),
        total: cohorts.iter().map(|cohort| cohort.total).sum(),
        cohorts,
    }
}

fn cohort(row: &Value, granularity: &str, wall: Wall) -> Option<CohortView> {
    let first: NaiveDate = row["period"].as_str()?.parse().ok()?;
    let start = begin(granularity, first);
    let values = row["retention"].as_array()?.iter().enumerate();
    let cell = |(number, value): (usize, &Value)| {
        let number = u32::try_from(number).ok()?;
        let (from, to) = (later(granularity, start, number)?, later(granularity, start, number + 1)?);
        (from <= wall.today()).then(|| cell(value.as_f64(), wall.today() < to))
    };
    let cells = values.map_while(cell).collect();
    Some(CohortView { label: wall.day(first), total: row["total"].as_f64().unwrap_or_default(), cells })
}

fn cell(percent: Option<f64>, is_running: bool) -> Cell {
    match percent {
        Some(percent) => Cell {
            text: numbers::percent(percent),
            level: ((percent / 20.0).ceil() as usize).min(5),
            is_running,
            is_unknown: false,
        },
        None => Cell { text: "?".to_owned(), is_unknown: true, ..Cell::default() },
    }
}

/// Returns the first day of a period.
fn begin(granularity: &str, day: NaiveDate) -> NaiveDate {
    match granularity {
        "week" => day - TimeDelta::days(day.weekday().num_days_from_monday().into()),
        "month" => day.with_day(1).unwrap_or(day),
        _ => day,
    }
}

/// Returns the first day of the period that is `by` periods later.
fn later(granularity: &str, start: NaiveDate, by: u32) -> Option<NaiveDate> {
    match granularity {
        "week" => start.checked_add_signed(TimeDelta::weeks(by.into())),
        "month" => start.checked_add_months(Months::new(by)),
        _ => start.checked_add_signed(TimeDelta::days(by.into())),
    }
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;
    use serde_json::json;

    use super::*;
    use crate::formatting::times::parse;

    #[test]
    fn future_running_and_unknown_cells_differ() {
        // A Sunday; the week began on Monday, 16 November.
        let wall = Wall { now: parse("2026-11-22T12:00:00Z").unwrap(), zone: Tz::UTC };
        let answer = json!({ "averageRetention": [100.0, 20.0, null], "cohorts": [
            { "period": "2026-11-04", "total": 10, "retention": [100.0, 41.3, null] },
            { "period": "2026-11-09", "total": 4, "retention": [100.0, 0.0, null] },
            { "period": "2026-11-16", "total": 2, "retention": [100.0, null, null] }] });
        let matrix = matrix(&answer, "week", wall);
        assert_eq!((matrix.columns.len(), matrix.total), (3, 16.0));
        assert_eq!(matrix.average, ["100 %", "20 %", "?"]);
        let lengths: Vec<_> = matrix.cohorts.iter().map(|cohort| cohort.cells.len()).collect();
        assert_eq!(lengths, [3, 2, 1], "the first cohort began on 2 November");
        let first = &matrix.cohorts[0].cells;
        assert_eq!((first[1].text.as_str(), first[1].level, first[1].is_running), ("41 %", 3, false));
        assert!(first[2].is_unknown && matrix.has_unknown);
        let second = &matrix.cohorts[1].cells[1];
        assert_eq!((second.text.as_str(), second.level, second.is_running), ("0 %", 0, true));
        assert!(matrix.cohorts[2].cells[0].is_running);
    }

    #[test]
    fn months_begin_on_their_first_day() {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        assert_eq!(begin("month", day("2026-11-22")), day("2026-11-01"));
        assert_eq!(later("month", day("2026-11-01"), 2), Some(day("2027-01-01")));
        assert_eq!(begin("day", day("2026-11-22")), day("2026-11-22"));
    }
}
