//! Periods: which days a question is about, and the instants between which they lie.

use chrono::{DateTime, Days as DayCount, NaiveDate, Utc};

use super::Zone;
use super::zones::start_of_day;
use crate::FieldError;

/// The days a question is about, as words of the API.
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
    /// The days named by `from` and `to`, both included.
    Custom,
}

impl Period {
    /// Every period.
    pub const ALL: [Self; 5] = [Self::Today, Self::Days7, Self::Days30, Self::Days90, Self::Custom];

    /// The period's name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::Days7 => "7d",
            Self::Days30 => "30d",
            Self::Days90 => "90d",
            Self::Custom => "custom",
        }
    }

    /// How many days it has, where that is fixed.
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
    /// The first.
    pub first: NaiveDate,
    /// The last.
    pub last: NaiveDate,
}

/// Instants from `start` on and before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first instant.
    pub start: DateTime<Utc>,
    /// The first instant after.
    pub end: DateTime<Utc>,
}

impl Days {
    /// How many.
    pub fn count(self) -> u64 {
        u64::try_from((self.last - self.first).num_days() + 1).unwrap_or_default()
    }

    /// Each of them.
    pub fn each(self) -> impl Iterator<Item = NaiveDate> {
        self.first.iter_days().take_while(move |day| *day <= self.last)
    }

    /// As many days immediately before. Days that haven't come yet are left out first: a month of which 12 days
    /// are over is compared with 12 days.
    #[must_use]
    pub fn before(self, today: NaiveDate) -> Self {
        let last = if today < self.first { self.last } else { self.last.min(today) };
        let count = Self { first: self.first, last }.count();
        let back = |day: NaiveDate, by| day.checked_sub_days(DayCount::new(by)).unwrap_or(NaiveDate::MIN);
        Self { first: back(self.first, count), last: back(self.first, 1) }
    }

    /// From the first instant of the first day up to the first instant of the day after the last, in `zone`.
    pub fn range(self, zone: Zone) -> Range {
        let day_after = self.last.succ_opt().unwrap_or(self.last);
        Range { start: start_of_day(self.first, zone), end: start_of_day(day_after, zone) }
    }
}

/// The words that name days in a question: `period`, and `from` and `to` where it is custom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'a> {
    /// Which periods the question may be about.
    pub(super) known: &'static [Period],
    pub(super) period: Option<&'a str>,
    pub(super) from: Option<&'a str>,
    pub(super) to: Option<&'a str>,
}

/// The days that are meant, as far as they can be read; the last 7 unless told otherwise.
pub(super) fn read_days(words: Words<'_>, today: NaiveDate, errors: &mut Vec<FieldError>) -> Option<Days> {
    let wanted = words.period.unwrap_or(Period::Days7.as_str());
    let Some(period) = words.known.iter().find(|period| period.as_str() == wanted) else {
        errors.push(unknown("period", words.known.iter().map(|period| period.as_str())));
        return None;
    };
    if let Some(days) = period.days() {
        // They say nothing here; but what is no date at all was meant for something.
        for (field, text) in [("from", words.from), ("to", words.to)] {
            text.and_then(|_| read_date(field, text, errors));
        }
        return Some(Days { first: today.checked_sub_days(DayCount::new(days - 1))?, last: today });
    }
    let first = read_date("from", words.from, errors);
    let last = read_date("to", words.to, errors);
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
    // Chrono alone would take `2026-1-5`, and years with a sign or of any length.
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

/// A error about a word that is none of the known ones.
pub(super) fn unknown(field: impl Into<String>, known: impl IntoIterator<Item = &'static str>) -> FieldError {
    let field = field.into();
    let known: Vec<_> = known.into_iter().collect();
    let message = format!("{field} must be one of {}", known.join(", "));
    FieldError::new(field, "unknown", message)
}
