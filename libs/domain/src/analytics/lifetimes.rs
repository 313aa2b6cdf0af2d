//! How long a visitor can be recognised: the life of the ids that retention counts by.
//!
//! An id is made with a salt that is destroyed at the end of its life, and from then on nobody can tell whether
//! somebody was there before. A life begins and ends with a calendar day of the site.

use chrono::{Datelike as _, Days, Months, NaiveDate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long an id lives.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Lifetime {
    /// A calendar day.
    Day,
    /// A week from Monday on.
    Week,
    /// A calendar month.
    #[default]
    Month,
    /// A quarter of a calendar year.
    Quarter,
}

impl Lifetime {
    /// Every lifetime, the shortest first.
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Quarter];

    /// Its name in the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Quarter => "quarter",
        }
    }

    /// The lifetime with that name.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lifetime| lifetime.word() == word)
    }

    /// The first day of the life in which `day` lies.
    pub fn first_day(self, day: NaiveDate) -> NaiveDate {
        let first_of = |month: u32| NaiveDate::from_ymd_opt(day.year(), month, 1).unwrap_or(day);
        match self {
            Self::Day => day,
            Self::Week => day.week(chrono::Weekday::Mon).first_day(),
            Self::Month => first_of(day.month()),
            Self::Quarter => first_of((day.month0() / 3) * 3 + 1),
        }
    }

    /// The first day of the life after the one in which `day` lies.
    pub fn next(self, day: NaiveDate) -> NaiveDate {
        let first = self.first_day(day);
        let next = match self {
            Self::Day => first.checked_add_days(Days::new(1)),
            Self::Week => first.checked_add_days(Days::new(7)),
            Self::Month => first.checked_add_months(Months::new(1)),
            Self::Quarter => first.checked_add_months(Months::new(3)),
        };
        next.unwrap_or(NaiveDate::MAX)
    }
}
