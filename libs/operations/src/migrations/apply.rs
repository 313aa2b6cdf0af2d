//! Applies the pending migrations, one process at a time.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use service::ticks;
use store::{Db, MigrationLock};
use tokio::time::Instant;
use warehouse::Warehouse;

use super::plan::{Plan, PlannedMigration};
use crate::audit::{LongChange, Operator};

/// Interval of reports, and of attempts to take the lock.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);
const LOCK_INTERVAL: Duration = Duration::from_millis(500);

/// What takes longer than two seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Another process is migrating.
    WaitingForLock,
    /// A migration is running.
    Applying {
        /// `Postgres` or `ClickHouse`.
        store: &'static str,
        /// The migration's name.
        name: String,
        /// How many are still to be applied, this one included.
        remaining: usize,
    },
}

/// How many migrations were applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    pub postgres: usize,
    pub clickhouse: usize,
    pub elapsed: Duration,
    /// Migrations of the next release, which this program does not know but accepts. Then it applied none.
    pub newer: Vec<String>,
}

/// Applies all pending migrations, first those of Postgres. A second process waits for the first. A run that was killed is
/// continued by the next one: each migration of Postgres is one transaction, and those of ClickHouse can be repeated.
///
/// On the schema of the next release nothing is pending: a program that is rolled back finds what it needs.
///
/// # Errors
///
/// A release after the next one has migrated the databases, or a statement failed. The migrations before it remain applied.
pub async fn apply(
    db: &Db,
    warehouse: &Warehouse,
    operator: &Operator,
    mut report: impl FnMut(Progress),
) -> Result<Applied> {
    let started = Instant::now();
    let _lock = lock(db, &mut report).await?;
    let plan = super::plan(db, warehouse).await?;
    if plan.is_newer() {
        ensure_accepted(db, &plan).await?;
        return Ok(Applied { newer: plan.unknown, elapsed: started.elapsed(), ..Applied::default() });
    }
    if plan.is_up_to_date() {
        return Ok(Applied { elapsed: started.elapsed(), ..Applied::default() });
    }
    let mut change = LongChange::begin(db, operator, "migrate", None, describe(&plan)).await?;
    let result = apply_plan(db, warehouse, &plan, &mut change, &mut report).await;
    change.end(db, result, |()| json!({})).await?;
    Ok(Applied {
        postgres: plan.postgres.len(),
        clickhouse: plan.clickhouse.len(),
        elapsed: started.elapsed(),
        newer: Vec::new(),
    })
}

/// Refuses the schema of a newer release, unless that is the next one, whose schema this program's services accept.
async fn ensure_accepted(db: &Db, plan: &Plan) -> Result<()> {
    let mismatch = store::find_schema_mismatch(db).await.context("asking Postgres")?;
    anyhow::ensure!(
        mismatch.is_none() && plan.is_up_to_date() && plan.edited.is_empty(),
        "a newer release has migrated these databases: this program does not know {}. Use the program of that release; an \
         older one can't migrate back",
        plan.unknown.join(", ")
    );
    Ok(())
}

async fn apply_plan(
    db: &Db,
    warehouse: &Warehouse,
    plan: &Plan,
    change: &mut LongChange<'_>,
    report: &mut impl FnMut(Progress),
) -> Result<()> {
    let pending = async || {
        let mut conn = store::acquire(db).await.ok()?;
        let pending = store::list_migrations(&mut conn).await.ok()?.pending;
        Some((pending.first()?.name.clone(), pending.len()))
    };
    with_reports("Postgres", store::migrate(db), pending, report).await.context("migrating Postgres")?;
    // One of these migrations may have created the log.
    change.retry_begin(db, describe(plan)).await?;
    let pending = async || {
        let pending = warehouse.list_migrations().await.ok()?.pending;
        Some((pending.first()?.name.to_owned(), pending.len()))
    };
    with_reports("ClickHouse", warehouse.migrate(), pending, report).await.context("migrating ClickHouse")
}

fn describe(plan: &Plan) -> Value {
    let last = |list: &[PlannedMigration]| list.last().map(|one| one.name.clone());
    json!({
        "postgres": plan.postgres.len(),
        "clickhouse": plan.clickhouse.len(),
        "last": last(&plan.postgres).or_else(|| last(&plan.clickhouse)),
    })
}

async fn lock(db: &Db, report: &mut impl FnMut(Progress)) -> Result<MigrationLock> {
    let mut attempts = ticks(LOCK_INTERVAL);
    let mut reported = Instant::now();
    loop {
        attempts.tick().await;
        if let Some(lock) = store::try_lock_migrations(db).await.context("connecting to Postgres")? {
            return Ok(lock);
        }
        if reported.elapsed() >= REPORT_INTERVAL {
            report(Progress::WaitingForLock);
            reported = Instant::now();
        }
    }
}

/// Awaits `work`, and reports the first pending migration from time to time.
async fn with_reports<E>(
    store: &'static str,
    work: impl Future<Output = Result<(), E>>,
    pending: impl AsyncFn() -> Option<(String, usize)>,
    report: &mut impl FnMut(Progress),
) -> Result<(), E> {
    let mut work = std::pin::pin!(work);
    let mut reports = service::ticks_after(REPORT_INTERVAL, REPORT_INTERVAL);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = reports.tick() => {}
        }
        tokio::select! {
            done = &mut work => return done,
            pending = pending() => if let Some((name, remaining)) = pending {
                report(Progress::Applying { store, name, remaining });
            },
        }
    }
}
