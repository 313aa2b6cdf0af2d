//! How much waits in the queues of Postgres, for metrics.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{query_as, query_scalar};

use crate::{Db, Error, PooledConn, acquire_detached};

/// A count of a million rows takes a fraction of it.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// Postgres releases the lock of a machine that is gone after this time and three probes.
const KEEP_ALIVE_SECONDS: &str = "15";

/// What waits in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueBacklog {
    pub queue: String,
    /// Rows that are due, and those that a worker is working on.
    pub due: i64,
    /// When the first of them became due.
    pub oldest: Option<DateTime<Utc>>,
}

/// The right to measure the queues, which one process holds at a time. It ends with its connection.
#[derive(Debug)]
pub struct QueueMeter {
    conn: PooledConn,
}

impl QueueMeter {
    /// Takes the right to measure, or returns `None` if another process has it.
    pub async fn try_acquire(db: &Db) -> Result<Option<Self>, Error> {
        let mut conn = acquire_detached(db, STATEMENT_TIMEOUT).await?;
        query_scalar!(
            r#"select set_config('tcp_keepalives_idle', $1, false) || set_config('tcp_keepalives_interval', $1, false)
                      || set_config('tcp_keepalives_count', '3', false) as "set!""#,
            KEEP_ALIVE_SECONDS,
        )
        .fetch_one(&mut *conn)
        .await?;
        let lock = query_scalar!(
            r#"select pg_try_advisory_lock(hashtextextended('webruntime:queue_meter', 0)) as "is_locked!""#
        );
        let is_locked = lock.fetch_one(&mut *conn).await?;
        Ok(is_locked.then_some(Self { conn }))
    }

    /// Returns what waits in each queue at `now`.
    pub async fn read(&mut self, now: DateTime<Utc>) -> Result<Vec<QueueBacklog>, Error> {
        let backlogs = query_as!(
            QueueBacklog,
            r#"select 'outbox' as "queue!", count(*) as "due!", min(due_at) as oldest from outbox where due_at <= $1
               union all
               select 'deliveries', count(*), min(d.next_attempt_at)
               from webhooks w join deliveries d on d.webhook_id = w.id
               where w.is_active and d.state = 'pending' and d.next_attempt_at <= $1
               union all
               select 'automation_runs', count(*), min(due_at) from automation_runs
               where due_at <= $1 and (concurrency_limit is null or status <> 'queued')
               union all
               select 'mails', count(*), min(due_at) from mails where due_at <= $1
               union all
               select 'trial_purges', count(*), min(claim_deadline) from accounts
               where claimed_at is null and claim_deadline <= $1
               union all
               select 'event_purges', count(*), min(due_at) from event_purges where due_at <= $1"#,
            now,
        );
        Ok(backlogs.fetch_all(&mut *self.conn).await?)
    }
}
