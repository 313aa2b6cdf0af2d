//! Counts of dropped events by site, hour and reason, kept for a day.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// Dropped events of one site, hour and reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedEvents {
    pub site_id: Uuid,
    /// The start of the hour.
    pub hour: DateTime<Utc>,
    /// The string form of `domain::tracking::Dropped`.
    pub reason: &'static str,
    pub count: i64,
}

/// Number of events dropped for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropCount {
    pub reason: String,
    pub count: i64,
}

/// Adds to the stored counts. Skips sites that no longer exist.
pub async fn add_dropped_events(conn: &mut Conn, drops: &[DroppedEvents]) -> Result<(), Error> {
    let sites: Vec<Uuid> = drops.iter().map(|drops| drops.site_id).collect();
    let hours: Vec<DateTime<Utc>> = drops.iter().map(|drops| drops.hour).collect();
    let reasons: Vec<&str> = drops.iter().map(|drops| drops.reason).collect();
    let counts: Vec<i64> = drops.iter().map(|drops| drops.count).collect();
    // In one order, so that concurrent collectors can't deadlock.
    query!(
        "insert into event_drops as d (site_id, hour, reason, count)
         select n.site_id, n.hour, n.reason, n.count
         from unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::bigint[]) n(site_id, hour, reason, count)
         join analytics_sites s on s.id = n.site_id
         order by n.site_id, n.hour, n.reason
         on conflict (site_id, hour, reason) do update set count = d.count + excluded.count",
        &sites,
        &hours,
        &reasons as &[&str],
        &counts,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the dropped events of a site since `since`, most frequent reason first.
pub async fn list_dropped_events(
    conn: &mut Conn,
    account_id: Uuid,
    site_id: Uuid,
    since: DateTime<Utc>,
) -> Result<Vec<DropCount>, Error> {
    let drops = query_as!(
        DropCount,
        r#"select d.reason, sum(d.count)::bigint as "count!" from event_drops d
           join analytics_sites s on s.id = d.site_id
           where s.account_id = $1 and d.site_id = $2 and d.hour > $3
           group by d.reason order by 2 desc, 1"#,
        account_id,
        site_id,
        since,
    )
    .fetch_all(conn)
    .await?;
    Ok(drops)
}

/// Deletes the counts of hours that began before `then`.
pub async fn delete_dropped_events_before(conn: &mut Conn, then: DateTime<Utc>) -> Result<(), Error> {
    query!("delete from event_drops where hour < $1", then).execute(conn).await?;
    Ok(())
}
