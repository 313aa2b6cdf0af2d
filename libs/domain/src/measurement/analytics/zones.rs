//! Time zones, which define when a site's days begin.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use crate::FieldError;

/// A site's time zone.
pub type Zone = Tz;

/// Parses an IANA name such as `Europe/Berlin`. The error names the field `timezone`.
pub fn parse_zone(name: &str) -> Result<Zone, FieldError> {
    name.parse().map_err(|_| {
        let message = "timezone must be an IANA name like `Europe/Berlin` or `UTC`, written as there";
        FieldError::new("timezone", "unknown", message)
    })
}

/// Returns the first instant of a day. If clocks skip midnight, the day begins later; if they repeat it, the first
/// one counts.
pub fn start_of_day(day: NaiveDate, zone: Zone) -> DateTime<Utc> {
    let midnight = day.and_time(NaiveTime::MIN);
    // Clocks move in steps of at least a quarter of an hour; a whole day was once skipped (Apia, 2011-12-30).
    (0..=24 * 4)
        .map(|quarters| midnight + TimeDelta::minutes(15 * quarters))
        .find_map(|local| zone.from_local_datetime(&local).earliest())
        .map_or_else(|| midnight.and_utc(), |instant| instant.with_timezone(&Utc))
}
