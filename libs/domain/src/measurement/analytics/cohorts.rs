//! Retention: the share of each cohort of new visitors that returned in later periods.
//!
//! Visitors are recognized by ids of limited lifetime ([`Lifetime`]). If an id rotated between the first visit and a
//! return, the return can't be recognized, so the value is null and not 0.

use std::collections::HashMap;

use chrono::{DateTime, Datelike as _, Days as DayCount, Months, NaiveDate, Utc, Weekday};

use super::filters::read_word;
use super::funnels::check_event;
use super::periods::{RawDays, read_days};
use super::{Days, Lifetime, Period, Zone, percent};
use crate::{FieldError, tracking};

/// Maximum number of cohorts in one response.
pub const COHORTS_MAX: usize = 100;

/// Length of the periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// Calendar days.
    Day,
    /// Weeks that begin on Monday.
    Week,
    /// Calendar months.
    Month,
}

impl Granularity {
    /// Every granularity.
    pub const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// Returns the granularity's name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// Returns the first day of the period that contains `day`.
    pub fn first_day(self, day: NaiveDate) -> NaiveDate {
        match self {
            Self::Day => day,
            Self::Week => day.week(Weekday::Mon).first_day(),
            Self::Month => day.with_day(1).unwrap_or(day),
        }
    }

    /// Returns the first day of the period that is `by` periods after the one that begins on `first`.
    fn later(self, first: NaiveDate, by: u32) -> NaiveDate {
        let later = match self {
            Self::Day => first.checked_add_days(DayCount::new(by.into())),
            Self::Week => first.checked_add_days(DayCount::new(7 * u64::from(by))),
            Self::Month => first.checked_add_months(Months::new(by)),
        };
        later.unwrap_or(NaiveDate::MAX)
    }

    /// Returns the id lifetime of the same length.
    fn as_lifetime(self) -> Lifetime {
        match self {
            Self::Day => Lifetime::Day,
            Self::Week => Lifetime::Week,
            Self::Month => Lifetime::Month,
        }
    }
}

/// The unparsed parameters of a retention query.
#[derive(Debug, Clone, Default)]
pub struct RawRetentionQuery<'a> {
    /// `firstEvent`; a page view if absent.
    pub first_event: Option<&'a str>,
    /// `returnEvent`; a page view if absent.
    pub return_event: Option<&'a str>,
    /// The days of the query.
    pub days: RawDays<'a>,
    /// `granularity`; days if absent.
    pub granularity: Option<&'a str>,
}

/// A validated retention query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionQuery {
    /// A visitor joins a cohort with the first event of this name.
    pub first_event: String,
    /// An event of this name is a return.
    pub return_event: String,
    /// Days on which visitors join a cohort.
    pub days: Days,
    pub granularity: Granularity,
    /// The days of each cohort, in order; the first and the last are clipped to `days`.
    pub periods: Vec<Days>,
    /// Today in the site's time zone.
    pub today: NaiveDate,
}

/// Number of visitors of one cohort that were active in one period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReturnCount {
    /// First day of the cohort's period.
    pub joined: NaiveDate,
    /// First day of the period of activity.
    pub active: NaiveDate,
    pub count: u64,
}

/// The visitors that joined in one period.
#[derive(Debug, Clone, PartialEq)]
pub struct Cohort {
    /// First day of the period.
    pub first_day: NaiveDate,
    /// Number of visitors in the cohort.
    pub total: u64,
    /// Number of active visitors in each period from the first on; `None` where it is unknown.
    pub active: Vec<Option<u64>>,
}

/// Parses and validates a retention query. Returns the errors of all fields.
pub fn parse_retention_query(
    query: &RawRetentionQuery<'_>,
    now: DateTime<Utc>,
    zone: Zone,
) -> Result<RetentionQuery, Vec<FieldError>> {
    let mut errors = Vec::new();
    let first_event = query.first_event.unwrap_or(tracking::PAGE_VIEW);
    let return_event = query.return_event.unwrap_or(tracking::PAGE_VIEW);
    check_event("firstEvent", first_event, &mut errors);
    check_event("returnEvent", return_event, &mut errors);
    let granularity =
        read_word("granularity", query.granularity, &Granularity::ALL, Granularity::as_str, &mut errors);
    let granularity = granularity.unwrap_or(Granularity::Day);
    let today = now.with_timezone(&zone).date_naive();
    let periods = read_days(query.days, &Period::ALL, today, &mut errors)
        .map(|days| (days, periods_of(days, granularity)));
    if periods.as_ref().is_some_and(|(_, periods)| periods.len() > COHORTS_MAX) {
        let message =
            format!("this makes more than {COHORTS_MAX} cohorts: ask for fewer days or longer periods");
        errors.push(FieldError::new("granularity", "too_many", message));
    }
    match periods {
        Some((days, periods)) if errors.is_empty() => Ok(RetentionQuery {
            first_event: first_event.to_owned(),
            return_event: return_event.to_owned(),
            days,
            granularity,
            periods,
            today,
        }),
        _ => Err(errors),
    }
}

/// Splits the days into periods; stops at one more than the maximum number of cohorts.
fn periods_of(days: Days, granularity: Granularity) -> Vec<Days> {
    let starts = std::iter::successors(Some(days.first), |first| {
        Some(granularity.later(granularity.first_day(*first), 1)).filter(|next| *next <= days.last)
    });
    let end_of = |first| granularity.later(granularity.first_day(first), 1).pred_opt().unwrap_or(days.last);
    starts.map(|first| Days { first, last: end_of(first).min(days.last) }).take(COHORTS_MAX + 1).collect()
}

impl RetentionQuery {
    /// Returns the last day of any cell.
    pub fn last_day(&self) -> NaiveDate {
        let count = u32::try_from(self.periods.len()).unwrap_or(u32::MAX);
        let last = self.granularity.first_day(self.days.last);
        self.granularity.later(last, count).pred_opt().unwrap_or(NaiveDate::MAX).min(self.today)
    }
}

/// Returns the cohorts in order of time, each with as many cells as there are cohorts.
///
/// `epochs` are the first days of id lifetimes that occur in the data; after the last of them ids rotate as
/// `lifetime` says. A cell is `None` if its period lies in the future, or if ids rotated between the cohort's first
/// day and the cell's last one.
pub fn fill_cohorts(
    query: &RetentionQuery,
    counts: &[ReturnCount],
    epochs: &[NaiveDate],
    lifetime: Lifetime,
) -> Vec<Cohort> {
    let mut rotations = epochs.to_vec();
    let latest = epochs.iter().max().copied();
    let further =
        std::iter::successors(latest, |day| Some(lifetime.epoch(*day).1).filter(|next| *next <= query.today));
    rotations.extend(further);
    let counts: HashMap<_, _> = counts.iter().map(|one| ((one.joined, one.active), one.count)).collect();
    let cells = u32::try_from(query.periods.len()).unwrap_or(u32::MAX);
    let cohort = |days: &Days| {
        let joined = query.granularity.first_day(days.first);
        let count = |active: NaiveDate| counts.get(&(joined, active)).copied().unwrap_or_default();
        let cell = |later: u32| {
            let active = query.granularity.later(joined, later);
            let end = query.granularity.later(active, 1).pred_opt().unwrap_or(active).min(query.today);
            let cut = later > 0 && rotations.iter().any(|day| days.first < *day && *day <= end);
            (active <= query.today && !cut).then(|| count(active))
        };
        Cohort { first_day: days.first, total: count(joined), active: (0..cells).map(cell).collect() }
    };
    query.periods.iter().map(cohort).collect()
}

impl Cohort {
    /// Returns the percentage of the cohort that was active in each period; the first is 100, or 0 for an empty
    /// cohort.
    pub fn retention(&self) -> Vec<Option<f64>> {
        self.active.iter().map(|active| active.map(|active| percent(active, self.total))).collect()
    }
}

/// Returns the percentages of all cohorts together, without those of unknown value; `None` if these have no visitors.
pub fn mean_retention(cohorts: &[Cohort]) -> Vec<Option<f64>> {
    let cells = cohorts.iter().map(|cohort| cohort.active.len()).max().unwrap_or_default();
    let mean = |index: usize| {
        let known = |cohort: &Cohort| Some((cohort.active.get(index).copied()??, cohort.total));
        let sum = cohorts.iter().filter_map(known).reduce(|(a, b), (c, d)| (a + c, b + d));
        sum.filter(|(_, total)| *total > 0).map(|(active, total)| percent(active, total))
    };
    (0..cells).map(mean).collect()
}

/// Returns a hint if the periods are too long for any return to be recognized.
pub fn retention_hint(granularity: Granularity, lifetime: Lifetime) -> Option<String> {
    (lifetime <= granularity.as_lifetime()).then(|| {
        let (long, short) = (granularity.as_str(), lifetime.as_str());
        format!(
            "visitor ids of this site live for one {short} at most, so no return in a later {long} can be \
             recognized: ask for a shorter granularity, or set a longer visitorIdLifetime for visits from now on"
        )
    })
}
