//! Expires visitor links. An event soon after midnight contains the visitor's id of the day before, so that a visit can
//! continue. If none did, the link only shows that one visitor came on both days, so it is removed once visits are final.

use chrono::{DateTime, TimeDelta, Utc};

use crate::client::{REWRITE_TIMEOUT, Warehouse, with_timeout};
use crate::deletion::has_rows;
use crate::error::Error;

/// How far back links are searched. Older ones were processed many times.
const MAX_AGE: TimeDelta = TimeDelta::days(62);

/// Condition of events with a link that no visit needs. Binds the bounds of the range twice, in milliseconds.
fn unused_links(sessions: &str) -> String {
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
    /// Removes the links of events before that time, unless a visit continued over that midnight: a very late event must
    /// not split it.
    pub async fn expire_visitor_links(&self, before: DateTime<Utc>) -> Result<(), Error> {
        let range = [(before - MAX_AGE).timestamp_millis(), before.timestamp_millis()];
        let bound = |query: clickhouse::query::Query| {
            [range, range].concat().into_iter().fold(query, |query, millis| query.bind(millis))
        };
        let count = bound(
            self.bounded_query(&format!("SELECT count() FROM events WHERE {}", unused_links("sessions"))),
        );
        if !has_rows(count).await? || self.has_unfinished_mutation("events", "previous = 0").await? {
            return Ok(());
        }
        let (local_table, on_cluster) = (self.local_table("events"), self.on_cluster());
        let condition = unused_links(&self.local_table("sessions"));
        let expire = format!("ALTER TABLE {local_table}{on_cluster} UPDATE previous = 0 WHERE {condition}");
        let expire = bound(self.cluster_statement(&expire, REWRITE_TIMEOUT))
            .with_setting("mutations_sync", "2")
            // Visits of that time are final, so all replicas compute the same.
            .with_setting("allow_nondeterministic_mutations", "1");
        with_timeout(REWRITE_TIMEOUT, expire.execute()).await
    }
}
