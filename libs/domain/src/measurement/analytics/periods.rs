//! Periods of queries, and their start and end in UTC.

use chrono::{DateTime, Days as DayCount, NaiveDate, Utc};

use super::Zone;
use super::zones::start_of_day;
use crate::FieldError;

/// A named period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// Since midnight.
    Today,
    /// Today and the 6 days before.
    Days7,
    /// Today and the 29 days before.
    Days30,
    /// Today and the 89 days before.
    Days90,
    /// The days from `from` to `to`, both included.
    Custom,
}

impl Period {
    /// Every period.
    pub const ALL: [Self; 5] = [Self::Today, Self::Days7, Self::Days30, Self::Days90, Self::Custom];

    /// Returns the period's name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::Days7 => "7d",
            Self::Days30 => "30d",
            Self::Days90 => "90d",
            Self::Custom => "custom",
        }
    }

    /// Returns the number of days, if it is fixed.
    fn days(self) -> Option<u64> {
        match self {
            Self::Today => Some(1),
            Self::Days7 => Some(7),
            Self::Days30 => Some(30),
            Self::Days90 => Some(90),
            Self::Custom => None,
        }
    }
}

/// Calendar days, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Days {
    pub first: NaiveDate,
    pub last: NaiveDate,
}

/// A half-open interval: from `start` to before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub start: DateTime<Utc>,
    pub end: DateTime<Utc>,
}

impl Days {
    /// Returns the number of days.
    pub fn count(self) -> u64 {
        u64::try_from((self.last - self.first).num_days() + 1).unwrap_or_default()
    }

    /// Iterates over the days.
    pub fn each(self) -> impl Iterator<Item = NaiveDate> {
        self.first.iter_days().take_while(move |day| *day <= self.last)
    }

    /// Returns the same number of days immediately before. Future days are not counted: a month of which 12 days are
    /// over is compared with 12 days.
    #[must_use]
    pub fn before(self, today: NaiveDate) -> Self {
        let last = if today < self.first { self.last } else { self.last.min(today) };
        let count = Self { first: self.first, last }.count();
        let back = |day: NaiveDate, by| day.checked_sub_days(DayCount::new(by)).unwrap_or(NaiveDate::MIN);
        Self { first: back(self.first, count), last: back(self.first, 1) }
    }

    /// Returns the interval from the first instant of the first day to the first instant after the last day, in
    /// `zone`.
    pub fn range(self, zone: Zone) -> Range {
        let day_after = self.last.succ_opt().unwrap_or(self.last);
        Range { start: start_of_day(self.first, zone), end: start_of_day(day_after, zone) }
    }
}

/// The unparsed parameters that select days.
#[derive(Debug, Clone, Copy, Default)]
pub struct RawDays<'a> {
    /// `period`; the last 7 days if absent.
    pub period: Option<&'a str>,
    /// `from`, an ISO date; read only when the period is custom.
    pub from: Option<&'a str>,
    /// `to`, an ISO date; read only when the period is custom.
    pub to: Option<&'a str>,
}

impl<'a> RawDays<'a> {
    /// Creates the parameters `period`, `from` and `to`.
    pub fn new(period: Option<&'a str>, from: Option<&'a str>, to: Option<&'a str>) -> Self {
        Self { period, from, to }
    }
}

/// Parses the days; `known` are the periods that the query allows. Returns `None` after an error.
pub(super) fn read_days(
    raw: RawDays<'_>,
    known: &[Period],
    today: NaiveDate,
    errors: &mut Vec<FieldError>,
) -> Option<Days> {
    let requested = raw.period.unwrap_or(Period::Days7.as_str());
    let Some(period) = known.iter().find(|period| period.as_str() == requested) else {
        errors.push(unknown("period", known.iter().map(|period| period.as_str())));
        return None;
    };
    if let Some(days) = period.days() {
        // These are ignored here, but an invalid date is an error all the same.
        for (field, text) in [("from", raw.from), ("to", raw.to)] {
            text.and_then(|_| read_date(field, text, errors));
        }
        return Some(Days { first: today.checked_sub_days(DayCount::new(days - 1))?, last: today });
    }
    let first = read_date("from", raw.from, errors);
    let last = read_date("to", raw.to, errors);
    let (first, last) = (first?, last?);
    if first > last {
        errors.push(FieldError::new("from", "after_to", "from must not be later than to"));
        return None;
    }
    Some(Days { first, last })
}

fn read_date(field: &str, text: Option<&str>, errors: &mut Vec<FieldError>) -> Option<NaiveDate> {
    let Some(text) = text else {
        let message = format!("{field} is required when period is `custom`");
        errors.push(FieldError::new(field, "required", message));
        return None;
    };
    // Chrono alone would accept `2026-1-5`, and years with a sign or of any length.
    let iso = text.len() == 10 && text.starts_with(|c: char| c.is_ascii_digit());
    let date = text.parse::<NaiveDate>().ok().filter(|_| iso);
    let known = NaiveDate::from_ymd_opt(1970, 1, 1)..NaiveDate::from_ymd_opt(2200, 1, 1);
    if !known.contains(&date) {
        let message = format!("{field} must be a date like `2026-03-29`, from 1970 to 2199");
        errors.push(FieldError::new(field, "date", message));
        return None;
    }
    date
}

/// Returns the error of a name that is not one of the known ones.
pub(super) fn unknown(field: impl Into<String>, known: impl IntoIterator<Item = &'static str>) -> FieldError {
    let field = field.into();
    let known: Vec<_> = known.into_iter().collect();
    let message = format!("{field} must be one of {}", known.join(", "));
    FieldError::new(field, "unknown", message)
}
