//! An event soon after midnight knows the visitor's id of the day before, so that a visit may go on. Where none did, it
//! says only that somebody came on both days, which is nobody's business: it is taken away once visits are final.

use chrono::{DateTime, TimeDelta, Utc};

use crate::events::{ERASE_TIMEOUT, is_any};
use crate::{Error, Warehouse, within};

/// How far back is looked: what is older was looked at many times.
const BACK: TimeDelta = TimeDelta::days(62);

/// Events whose visitor's id of the day before served no visit. Twice the same two instants, in milliseconds.
fn unused(sessions: &str) -> String {
    format!(
        "previous != 0
         AND received_at >= fromUnixTimestamp64Milli(toInt64(?)) AND received_at < fromUnixTimestamp64Milli(toInt64(?))
         AND (site_id, previous) NOT IN (
             SELECT site_id, visitor FROM {sessions} FINAL
             WHERE start >= fromUnixTimestamp64Milli(toInt64(?)) - INTERVAL 1 DAY
               AND start < fromUnixTimestamp64Milli(toInt64(?)) AND toDate(ended) > toDate(start))"
    )
}

impl Warehouse {
    /// Makes events from before then forget their visitor's id of the day before, unless a visit went on over that
    /// midnight: that one must stay in one piece when an event comes very late.
    ///
    /// # Errors
    /// ClickHouse is away or too slow.
    pub async fn expire_visitor_links(&self, before: DateTime<Utc>) -> Result<(), Error> {
        let range = [(before - BACK).timestamp_millis(), before.timestamp_millis()];
        let bound = |query: clickhouse::query::Query| {
            [range, range].concat().into_iter().fold(query, |query, millis| query.bind(millis))
        };
        let count = bound(self.work(&format!("SELECT count() FROM events WHERE {}", unused("sessions"))));
        if !is_any(count).await? || self.is_being_rewritten("events", "previous = 0").await? {
            return Ok(());
        }
        let (home, everywhere) = (self.home_of("events"), self.everywhere());
        let unused = unused(&self.home_of("sessions"));
        let forget = format!("ALTER TABLE {home}{everywhere} UPDATE previous = 0 WHERE {unused}");
        let forget = bound(self.client.query(&forget))
            .with_setting("mutations_sync", "2")
            // Visits of that time don't change any more: the replicas find the same.
            .with_setting("allow_nondeterministic_mutations", "1");
        within(ERASE_TIMEOUT, forget.execute()).await
    }
}
