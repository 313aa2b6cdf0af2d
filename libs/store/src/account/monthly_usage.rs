//! Counters of a calendar month (UTC), exact under concurrency. An account without a row has used nothing.
//!
//! Automation runs are counted as they are inserted. Events are too frequent for that: collectors lease blocks in
//! advance and return the unused rest. A leased block counts as used, so the sum over all collectors never exceeds the limit. A
//! collector that is killed loses the rest of its block.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use domain::months::month_of;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// How long charged segments are remembered; longer than any outage of a collector.
const HELD_FOR: TimeDelta = TimeDelta::days(90);

/// Usage of a calendar month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MonthlyUsage {
    /// Analytics events, including the blocks that collectors hold.
    pub events: i64,
    pub automation_runs: i64,
}

/// Returns the usage of the month that contains `now`.
pub async fn find_monthly_usage(
    conn: &mut Conn,
    account_id: Uuid,
    now: DateTime<Utc>,
) -> Result<MonthlyUsage, Error> {
    let months = query_as!(
        MonthlyUsage,
        "select events, automation_runs from monthly_usage where account_id = $1 and month = $2",
        account_id,
        month_of(now),
    )
    .fetch_optional(conn)
    .await?;
    Ok(months.unwrap_or_default())
}

/// Counts up to `wanted` more runs in the month of `now` within `limit` (-1: unlimited), and returns how many were
/// counted. Counts none if the account does not exist.
pub async fn reserve_automation_runs(
    conn: &mut Conn,
    account_id: Uuid,
    now: DateTime<Utc>,
    wanted: i64,
    limit: i64,
) -> Result<i64, Error> {
    if wanted <= 0 {
        return Ok(0);
    }
    reserve(conn, account_id, month_of(now), Counter::AutomationRuns, wanted, limit).await
}

/// Returns `count` runs of the month of `now` that were reserved and not started.
pub async fn return_automation_runs(
    conn: &mut Conn,
    account_id: Uuid,
    now: DateTime<Utc>,
    count: i64,
) -> Result<(), Error> {
    query!(
        "update monthly_usage set automation_runs = automation_runs - $3 where account_id = $1 and month = $2",
        account_id,
        month_of(now),
        count,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Leases up to `want` events of `month` and returns how many were granted. The month's events never exceed `limit`
/// (-1: unlimited). A lease takes at most a quarter of the remainder (but at least one), so that near the limit no
/// collector holds what another needs. Grants nothing if the account no longer exists. After an error it is unknown
/// whether a lease was granted; the caller must treat it as lost.
pub async fn lease_events(
    conn: &mut Conn,
    account_id: Uuid,
    month: NaiveDate,
    want: i64,
    limit: i64,
) -> Result<i64, Error> {
    reserve(conn, account_id, month, Counter::Events, want, limit).await
}

/// Returns `count` unused events of `month`. Returns an error if more would be released than is counted.
pub async fn return_unused_events(
    conn: &mut Conn,
    account_id: Uuid,
    month: NaiveDate,
    count: i64,
) -> Result<(), Error> {
    query!(
        "update monthly_usage set events = events - $3 where account_id = $1 and month = $2",
        account_id,
        month,
        count,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Charges `count` events of `month` that were accepted without a lease while Postgres was unavailable, even beyond the
/// limit.
pub async fn charge_events(
    conn: &mut Conn,
    account_id: Uuid,
    month: NaiveDate,
    count: i64,
) -> Result<(), Error> {
    begin_month(conn, account_id, month).await?;
    query!(
        "update monthly_usage set events = events + $3 where account_id = $1 and month = $2",
        account_id,
        month,
        count,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Charges events that a collector held back in a segment because their site could not be looked up. Charges each
/// segment and account only once, however often it is called. Skips accounts that no longer exist. On an error nothing
/// is charged.
pub async fn charge_held_events(
    conn: &mut Conn,
    segment_id: Uuid,
    month: NaiveDate,
    counts: &[(Uuid, i64)],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let (accounts, counts): (Vec<Uuid>, Vec<i64>) = counts.iter().copied().unzip();
    query!(
        "with held as (
           select * from unnest($2::uuid[], $3::bigint[]) as held(account_id, count)
         ), fresh as (
           insert into held_charges (segment_id, account_id, charged_at)
           select $1, id, $5 from accounts where id = any($2) order by id
           on conflict do nothing returning account_id
         )
         insert into monthly_usage as m (account_id, month, events)
         select account_id, $4, count from held join fresh using (account_id) order by account_id
         on conflict (account_id, month) do update set events = m.events + excluded.events",
        segment_id,
        &accounts,
        &counts,
        month,
        now,
    )
    .execute(&mut *conn)
    .await?;
    query!("delete from held_charges where charged_at < $1", now - HELD_FOR).execute(conn).await?;
    Ok(())
}

/// A counter of the month.
#[derive(Clone, Copy)]
enum Counter {
    Events,
    AutomationRuns,
}

/// Counts up to `wanted` more within `limit`, and returns how many were counted: none if the account does not exist.
async fn reserve(
    conn: &mut Conn,
    account_id: Uuid,
    month: NaiveDate,
    counter: Counter,
    wanted: i64,
    limit: i64,
) -> Result<i64, Error> {
    // The lock makes `before` see the latest of several concurrent reservations.
    macro_rules! reserve {
        ($column:literal, $share:literal) => {
            query_scalar!(
                "with before as (
                   select "
                    + $column
                    + " as used from monthly_usage where account_id = $1 and month = $2 for update
                 ), granted as (
                   select case when $4::bigint = -1 then greatest($3::bigint, 0)
                               else greatest(least($3, greatest(($4 - used) / "
                    + $share
                    + ", 1), $4 - used), 0) end as count
                   from before
                 ), counted as (
                   update monthly_usage m set "
                    + $column
                    + " = m."
                    + $column
                    + " + granted.count from granted
                   where m.account_id = $1 and m.month = $2 and granted.count > 0
                 )
                 select count as \"count!\" from granted",
                account_id,
                month,
                wanted,
                limit,
            )
            .fetch_optional(&mut *conn)
            .await?
        };
    }
    // The first attempt may find that the month has no row yet.
    for _ in 0..2 {
        let granted = match counter {
            Counter::Events => reserve!("events", "4"),
            Counter::AutomationRuns => reserve!("automation_runs", "1"),
        };
        if let Some(granted) = granted {
            return Ok(granted);
        }
        begin_month(conn, account_id, month).await?;
    }
    Ok(0)
}

/// Inserts the month's row unless it exists or the account does not.
async fn begin_month(conn: &mut Conn, account_id: Uuid, month: NaiveDate) -> Result<(), Error> {
    query!(
        "insert into monthly_usage (account_id, month) select id, $2 from accounts where id = $1
         on conflict do nothing",
        account_id,
        month,
    )
    .execute(conn)
    .await?;
    Ok(())
}
