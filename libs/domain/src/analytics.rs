//! What a question about a site is: which figure, over which days.
//!
//! Periods are whole calendar days in the site's time zone: `7d` is today and the six days before, which is what
//! people read into it. A range of days becomes a half-open range of instants here, once, so that a day of
//! 23 or 25 hours needs no further thought anywhere else.

use chrono::{DateTime, Days, NaiveDate, TimeDelta, TimeZone, Utc};

use crate::Complaint;

#[cfg(test)]
mod tests;

/// A figure that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// How often pages were shown.
    PageViews,
    /// Distinct daily visitor ids with any event. As ids change every day, over several days this is the sum of
    /// the days' visitors, not of the people.
    UniqueVisitors,
}

impl Metric {
    /// Every metric.
    pub const ALL: [Self; 2] = [Self::PageViews, Self::UniqueVisitors];

    /// The metric's name in the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::PageViews => "page_views",
            Self::UniqueVisitors => "unique_visitors",
        }
    }

    /// The metric with that name.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.word() == word)
    }
}

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
    pub fn word(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::Days7 => "7d",
            Self::Days30 => "30d",
            Self::Days90 => "90d",
            Self::Custom => "custom",
        }
    }

    /// The period with that name.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|period| period.word() == word)
    }
}

/// A question as it arrives: the query parameters as sent, unread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// `metric`; page views if absent.
    pub metric: Option<&'a str>,
    /// `period`; the last 7 days if absent.
    pub period: Option<&'a str>,
    /// `from`, an ISO date; read only when the period is custom.
    pub from: Option<&'a str>,
    /// `to`, an ISO date; read only when the period is custom.
    pub to: Option<&'a str>,
}

/// A question that can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// The figure.
    pub metric: Metric,
    /// The time it is about.
    pub range: Range,
}

/// Instants from `start` on and before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first instant.
    pub start: DateTime<Utc>,
    /// The first instant after.
    pub end: DateTime<Utc>,
}

/// Reads a question; every field that is wrong is complained about at once.
pub fn read_question<Zone: TimeZone>(
    asked: Asked<'_>,
    now: DateTime<Utc>,
    zone: &Zone,
) -> Result<Question, Vec<Complaint>> {
    let mut complaints = Vec::new();
    let metric = read_metric(asked.metric, &mut complaints);
    let days = read_days(asked, now.with_timezone(zone).date_naive(), &mut complaints);
    match (metric, days) {
        (Some(metric), Some((first, last))) if complaints.is_empty() => {
            Ok(Question { metric, range: Range::of_days(first, last, zone) })
        }
        _ => Err(complaints),
    }
}

fn read_metric(word: Option<&str>, complaints: &mut Vec<Complaint>) -> Option<Metric> {
    let Some(word) = word else { return Some(Metric::PageViews) };
    let metric = Metric::from_word(word);
    if metric.is_none() {
        complaints.push(unknown("metric", &Metric::ALL.map(Metric::word)));
    }
    metric
}

/// The first and the last day of the period, as far as it can be read.
fn read_days(
    asked: Asked<'_>,
    today: NaiveDate,
    complaints: &mut Vec<Complaint>,
) -> Option<(NaiveDate, NaiveDate)> {
    let Some(period) = Period::from_word(asked.period.unwrap_or("7d")) else {
        complaints.push(unknown("period", &Period::ALL.map(Period::word)));
        return None;
    };
    let back = |days| Some((today.checked_sub_days(Days::new(days))?, today));
    match period {
        Period::Today => back(0),
        Period::Days7 => back(6),
        Period::Days30 => back(29),
        Period::Days90 => back(89),
        Period::Custom => {
            let first = read_date("from", asked.from, complaints);
            let last = read_date("to", asked.to, complaints);
            let (first, last) = (first?, last?);
            if first > last {
                complaints.push(Complaint::new("from", "after_to", "from must not be later than to"));
            }
            Some((first, last))
        }
    }
}

fn read_date(field: &str, text: Option<&str>, complaints: &mut Vec<Complaint>) -> Option<NaiveDate> {
    let Some(text) = text else {
        let message = format!("{field} is required when period is `custom`");
        complaints.push(Complaint::new(field, "required", message));
        return None;
    };
    // Chrono alone would take `2026-1-5`, and years with a sign or of any length.
    let iso = text.len() == 10 && text.starts_with(|c: char| c.is_ascii_digit());
    let date = text.parse::<NaiveDate>().ok().filter(|_| iso);
    let known = NaiveDate::from_ymd_opt(1970, 1, 1)..NaiveDate::from_ymd_opt(2200, 1, 1);
    if !known.contains(&date) {
        let message = format!("{field} must be a date like `2026-03-29`, from 1970 to 2199");
        complaints.push(Complaint::new(field, "date", message));
        return None;
    }
    date
}

fn unknown(field: &str, known: &[&str]) -> Complaint {
    Complaint::new(field, "unknown", format!("{field} must be one of {}", known.join(", ")))
}

impl Range {
    /// From the first instant of `first` up to the first instant of the day after `last`, in `zone`.
    pub fn of_days<Zone: TimeZone>(first: NaiveDate, last: NaiveDate, zone: &Zone) -> Self {
        let day_after = last.checked_add_days(Days::new(1)).unwrap_or(last);
        Self { start: start_of_day(first, zone), end: start_of_day(day_after, zone) }
    }
}

/// The first instant of a day. Where clocks skip midnight the day begins later; where they repeat it, the first
/// of the two begins it.
fn start_of_day<Zone: TimeZone>(day: NaiveDate, zone: &Zone) -> DateTime<Utc> {
    let midnight = day.and_time(chrono::NaiveTime::MIN);
    // Clocks are moved by quarters of an hour at the finest; a whole day was once skipped (Apia, 2011-12-30).
    (0..=24 * 4)
        .map(|quarters| midnight + TimeDelta::minutes(15 * quarters))
        .find_map(|local| zone.from_local_datetime(&local).earliest())
        .map_or_else(|| midnight.and_utc(), |instant| instant.with_timezone(&Utc))
}
