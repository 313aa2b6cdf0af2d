//! The identity of a salt: a day, or a period of a site.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use domain::visitors::SALT_BYTES;
use uuid::Uuid;

/// The bytes of a salt.
pub(in super::super) type Salt = [u8; SALT_BYTES];

/// What a salt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum SaltId {
    Day(NaiveDate),
    /// A site, and the first day of its period.
    Period(Uuid, NaiveDate),
}

impl SaltId {
    /// Returns the key of its copy. A site has one copy, of its newest period.
    pub(super) fn copy_key(&self) -> String {
        match self {
            Self::Day(day) => format!("salt:day:{day}"),
            Self::Period(site_id, _) => format!("salt:site:{site_id}"),
        }
    }

    /// Returns the purpose for which its copy is sealed, so that no copy is taken for that of another salt.
    pub(super) fn purpose(&self) -> String {
        match self {
            Self::Day(day) => format!("visitor salt of {day}"),
            Self::Period(site_id, epoch) => format!("visitor salt of {site_id} from {epoch}"),
        }
    }

    pub(super) fn first_day(&self) -> NaiveDate {
        match self {
            Self::Day(day) | Self::Period(_, day) => *day,
        }
    }
}

/// Returns when the salt of a day is destroyed: after the next day, because a visit may have begun before midnight.
pub(super) fn end_of_day_salt(day: NaiveDate) -> DateTime<Utc> {
    let last = day.checked_add_days(Days::new(2)).unwrap_or(NaiveDate::MAX);
    last.and_time(NaiveTime::MIN).and_utc()
}
