//! Retention: of those who did something for the first time in a period, how many came back in later ones.
//!
//! People are told apart by ids of limited life ([`Lifetime`]). Where one life ended between the first visit and
//! the return, nobody can tell, and the answer is no number: null, and not 0.

use std::collections::HashMap;

use chrono::{DateTime, Datelike as _, Days as DayCount, Months, NaiveDate, Utc, Weekday};

use super::filters::read_word;
use super::funnels::check_event;
use super::periods::{Words, read_days};
use super::{Days, Lifetime, Period, Zone, percent};
use crate::{FieldError, tracking};

/// Cohorts of one answer.
pub const COHORTS_MAX: usize = 100;

/// How long the periods are in which cohorts come and return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// Calendar days.
    Day,
    /// Weeks from Monday on.
    Week,
    /// Calendar months.
    Month,
}

impl Granularity {
    /// Every granularity.
    pub const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The first day of the period in which `day` lies.
    pub fn first_day(self, day: NaiveDate) -> NaiveDate {
        match self {
            Self::Day => day,
            Self::Week => day.week(Weekday::Mon).first_day(),
            Self::Month => day.with_day(1).unwrap_or(day),
        }
    }

    /// The first day of the period that is `by` later than the one beginning with `first`.
    fn later(self, first: NaiveDate, by: u32) -> NaiveDate {
        let later = match self {
            Self::Day => first.checked_add_days(DayCount::new(by.into())),
            Self::Week => first.checked_add_days(DayCount::new(7 * u64::from(by))),
            Self::Month => first.checked_add_months(Months::new(by)),
        };
        later.unwrap_or(NaiveDate::MAX)
    }

    /// The life of ids that is as long.
    fn as_lifetime(self) -> Lifetime {
        match self {
            Self::Day => Lifetime::Day,
            Self::Week => Lifetime::Week,
            Self::Month => Lifetime::Month,
        }
    }
}

/// Retention as it is asked for.
#[derive(Debug, Clone, Default)]
pub struct AskedRetention<'a> {
    /// `firstEvent`; a page view if absent.
    pub first_event: Option<&'a str>,
    /// `returnEvent`; a page view if absent.
    pub return_event: Option<&'a str>,
    /// `period`; the last 7 days if absent.
    pub period: Option<&'a str>,
    /// `from`, read only when the period is custom.
    pub from: Option<&'a str>,
    /// `to`, read only when the period is custom.
    pub to: Option<&'a str>,
    /// `granularity`; days if absent.
    pub granularity: Option<&'a str>,
}

/// Retention that can be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// What somebody did for the first time.
    pub first_event: String,
    /// What counts as having come back.
    pub return_event: String,
    /// Who did it for the first time on one of these days belongs to a cohort.
    pub days: Days,
    /// How long periods are.
    pub granularity: Granularity,
    /// The cohorts' days, in order; the first and the last are cut where the days end.
    pub periods: Vec<Days>,
    /// Today at the site.
    pub today: NaiveDate,
}

/// So many of those who came in one period were there in another (or the same).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returns {
    /// First day of the period they came in.
    pub came: NaiveDate,
    /// First day of the period they were there.
    pub there: NaiveDate,
    /// How many.
    pub count: u64,
}

/// Those who came in one period.
#[derive(Debug, Clone, PartialEq)]
pub struct Cohort {
    /// The first of the days they came.
    pub first_day: NaiveDate,
    /// How many they are.
    pub total: u64,
    /// How many were there, period by period from the first; none where nobody can tell.
    pub there: Vec<Option<u64>>,
}

/// Reads what is asked for; every field that is wrong is complained about at once.
///
/// # Errors
/// What is wrong with it.
pub fn read_retention(
    asked: &AskedRetention<'_>,
    now: DateTime<Utc>,
    zone: Zone,
) -> Result<Retention, Vec<FieldError>> {
    let mut errors = Vec::new();
    let said = &mut errors;
    let first_event = asked.first_event.unwrap_or(tracking::PAGE_VIEW);
    let return_event = asked.return_event.unwrap_or(tracking::PAGE_VIEW);
    check_event("firstEvent", first_event, said);
    check_event("returnEvent", return_event, said);
    let granularity =
        read_word("granularity", asked.granularity, &Granularity::ALL, Granularity::as_str, said);
    let granularity = granularity.unwrap_or(Granularity::Day);
    let today = now.with_timezone(&zone).date_naive();
    let words = Words { known: &Period::ALL, period: asked.period, from: asked.from, to: asked.to };
    let periods = read_days(words, today, said).map(|days| (days, periods_of(days, granularity)));
    if periods.as_ref().is_some_and(|(_, periods)| periods.len() > COHORTS_MAX) {
        let message =
            format!("this makes more than {COHORTS_MAX} cohorts: ask for fewer days or longer periods");
        said.push(FieldError::new("granularity", "too_many", message));
    }
    match periods {
        Some((days, periods)) if errors.is_empty() => Ok(Retention {
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

/// The days cut into periods: one more than there may be, at most.
fn periods_of(days: Days, granularity: Granularity) -> Vec<Days> {
    let starts = std::iter::successors(Some(days.first), |first| {
        Some(granularity.later(granularity.first_day(*first), 1)).filter(|next| *next <= days.last)
    });
    let end_of = |first| granularity.later(granularity.first_day(first), 1).pred_opt().unwrap_or(days.last);
    starts.map(|first| Days { first, last: end_of(first).min(days.last) }).take(COHORTS_MAX + 1).collect()
}

impl Retention {
    /// The last day that any cell is about.
    pub fn last_day(&self) -> NaiveDate {
        let count = u32::try_from(self.periods.len()).unwrap_or(u32::MAX);
        let last = self.granularity.first_day(self.days.last);
        self.granularity.later(last, count).pred_opt().unwrap_or(NaiveDate::MAX).min(self.today)
    }
}

/// The cohorts in order of time, each with as many cells as there are cohorts.
///
/// `epochs` are the days on which a life of ids began, as far as any were seen; after the last of them lives go on
/// as `lifetime` says. A cell is none if its period lies in the future, or if between the cohort's first day and
/// the cell's last one life ended and another began.
pub fn fill_cohorts(
    asked: &Retention,
    counts: &[Returns],
    epochs: &[NaiveDate],
    lifetime: Lifetime,
) -> Vec<Cohort> {
    let mut rotations = epochs.to_vec();
    let latest = epochs.iter().max().copied();
    let further =
        std::iter::successors(latest, |day| Some(lifetime.epoch(*day).1).filter(|next| *next <= asked.today));
    rotations.extend(further);
    let counts: HashMap<_, _> = counts.iter().map(|one| ((one.came, one.there), one.count)).collect();
    let cells = u32::try_from(asked.periods.len()).unwrap_or(u32::MAX);
    let cohort = |days: &Days| {
        let came = asked.granularity.first_day(days.first);
        let count = |there: NaiveDate| counts.get(&(came, there)).copied().unwrap_or_default();
        let cell = |later: u32| {
            let there = asked.granularity.later(came, later);
            let end = asked.granularity.later(there, 1).pred_opt().unwrap_or(there).min(asked.today);
            let cut = later > 0 && rotations.iter().any(|day| days.first < *day && *day <= end);
            (there <= asked.today && !cut).then(|| count(there))
        };
        Cohort { first_day: days.first, total: count(came), there: (0..cells).map(cell).collect() }
    };
    asked.periods.iter().map(cohort).collect()
}

impl Cohort {
    /// How many percent of the cohort were there, period by period; the first is 100, or 0 if there is nobody.
    pub fn retention(&self) -> Vec<Option<f64>> {
        self.there.iter().map(|there| there.map(|there| percent(there, self.total))).collect()
    }
}

/// The same of all cohorts taken together: those of which a period can't be told are left out of it.
pub fn mean_retention(cohorts: &[Cohort]) -> Vec<Option<f64>> {
    let cells = cohorts.iter().map(|cohort| cohort.there.len()).max().unwrap_or_default();
    let mean = |index: usize| {
        let known = |cohort: &Cohort| Some((cohort.there.get(index).copied()??, cohort.total));
        let sum = cohorts.iter().filter_map(known).reduce(|(a, b), (c, d)| (a + c, b + d));
        sum.map(|(there, total)| percent(there, total))
    };
    (0..cells).map(mean).collect()
}

/// What to say if periods are so long that no return can be seen.
pub fn hint_for(granularity: Granularity, lifetime: Lifetime) -> Option<String> {
    (lifetime <= granularity.as_lifetime()).then(|| {
        let (long, short) = (granularity.as_str(), lifetime.as_str());
        format!(
            "visitor ids of this site live for one {short} at most, so that nobody can be seen to return in a later \
             {long}: ask for a shorter granularity, or set a longer visitorIdLifetime for visits from now on"
        )
    })
}
