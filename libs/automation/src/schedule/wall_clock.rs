//! Cron lines that name times of the wall clock: found without a time zone, then placed on the time line.

use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, SubsecRound, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use croner::Cron;

/// No clock has ever been further from UTC.
const OFFSET_MAX: TimeDelta = TimeDelta::hours(16);

/// Returns the first time after an instant at which a line fires.
pub(super) fn next_after(cron: &Cron, zone: Tz, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let mut local = wall_clock(zone, instant.trunc_subsecs(0))?;
    loop {
        local = cron.find_next_occurrence(&local.and_utc(), false).ok()?.naive_utc();
        // In the second pass of a repeated hour, its times have fired already.
        let fires = first_instant(zone, local)?;
        if fires > instant {
            return Some(fires);
        }
    }
}

/// Returns the last time at which a line fired, until and with an instant.
pub(super) fn last_until(cron: &Cron, zone: Tz, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
    // In the second pass of a repeated hour, later times of the wall clock have fired already.
    let mut local = wall_clock(zone, instant)?;
    if let LocalResult::Ambiguous(first, second) = zone.from_local_datetime(&local)
        && second.with_timezone(&Utc) <= instant
    {
        local = local.checked_add_signed(second.signed_duration_since(first))?;
    }
    let mut is_inclusive = true;
    loop {
        local = cron.find_previous_occurrence(&local.and_utc(), is_inclusive).ok()?.naive_utc();
        is_inclusive = false;
        let fired = first_instant(zone, local)?;
        if fired <= instant {
            return Some(fired);
        }
    }
}

fn wall_clock(zone: Tz, instant: DateTime<Utc>) -> Option<NaiveDateTime> {
    let utc = instant.naive_utc();
    utc.checked_add_offset(zone.offset_from_utc_datetime(&utc).fix())
}

/// Returns the first instant at which a clock shows this time or, if it skips it, a later one.
fn first_instant(zone: Tz, local: NaiveDateTime) -> Option<DateTime<Utc>> {
    match zone.from_local_datetime(&local) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(at.with_timezone(&Utc)),
        LocalResult::None => {
            // Until the gap the clock shows less than this time, afterwards more.
            let mut before = local.and_utc().checked_sub_signed(OFFSET_MAX)?;
            let mut after = local.and_utc().checked_add_signed(OFFSET_MAX)?;
            while after - before > TimeDelta::seconds(1) {
                let middle = (before + (after - before) / 2).trunc_subsecs(0);
                if wall_clock(zone, middle)? < local { before = middle } else { after = middle }
            }
            Some(after)
        }
    }
}
