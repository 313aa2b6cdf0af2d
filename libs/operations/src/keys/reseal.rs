//! Re-encrypts every stored secret under the first master key, while the services run.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use domain::encryption::{DecryptError, MasterKey};
use serde_json::json;
use service::Rng;
use store::resealing::{SealedColumn, list_key_uses, reseal_batch};
use store::{Conn, Db};

use crate::audit::{LongChange, Operator};

/// Values of one statement.
const BATCH: u32 = 200;
/// How often values are tried again that services were changing meanwhile.
const PASSES: usize = 10;
const PASS_INTERVAL: Duration = Duration::from_millis(200);
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Values of a column that can't be opened and are named.
const SHOWN_UNREADABLE: usize = 5;

/// A step of the work.
#[derive(Debug)]
pub enum ResealStep {
    /// What it is doing, about once a second.
    Progress(String),
    /// A column is done.
    Column(ColumnOutcome),
}

/// What became of one column.
#[derive(Debug)]
pub struct ColumnOutcome {
    column: SealedColumn,
    to_reseal: i64,
    resealed: u64,
    postponed: u64,
    unreadable: Vec<(String, DecryptError)>,
    seconds: f64,
}

impl ColumnOutcome {
    /// The heading above the lines of all columns.
    #[must_use]
    pub fn heading() -> String {
        format!("{:<34} {:>9} {:>9} {:>8}", "column", "others'", "resealed", "seconds")
    }

    fn remaining(&self) -> u64 {
        self.postponed + self.unreadable.len() as u64
    }
}

impl fmt::Display for ColumnOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, to_reseal, resealed, postponed, unreadable, seconds } = self;
        write!(f, "{:<34} {to_reseal:>9} {resealed:>9} {seconds:>8.1}", column.name())?;
        if *postponed > 0 {
            write!(f, "\n  {postponed} were being changed by a service; run the command again")?;
        }
        for (row, error) in unreadable.iter().take(SHOWN_UNREADABLE) {
            write!(f, "\n  {row}: {error}")?;
        }
        if unreadable.len() > SHOWN_UNREADABLE {
            write!(f, "\n  … and {} more that can't be opened", unreadable.len() - SHOWN_UNREADABLE)?;
        }
        Ok(())
    }
}

/// Re-encrypts all secrets. Returns `false` if some could not be. It may be stopped and run again.
pub async fn reseal_all(
    db: &Db,
    operator: &Operator,
    keys: &MasterKey,
    mut report: impl FnMut(ResealStep),
) -> Result<bool> {
    let key = keys.sealing_id().to_string();
    let change = LongChange::begin(db, operator, "keys rotate master", None, json!({ "key": &key })).await?;
    let result = reseal_columns(db, keys, &mut report).await;
    let detail = |&(resealed, remaining): &(u64, u64)| json!({ "key": key, "resealed": resealed, "remaining": remaining });
    let (_, remaining) = change.end(db, result, detail).await?;
    Ok(remaining == 0)
}

/// Returns how many values were re-encrypted, and how many could not be.
async fn reseal_columns(
    db: &Db,
    keys: &MasterKey,
    report: &mut impl FnMut(ResealStep),
) -> Result<(u64, u64)> {
    let mut conn = store::acquire(db).await?;
    let (mut resealed, mut remaining) = (0, 0);
    for column in SealedColumn::ALL {
        let outcome = reseal(&mut conn, column, keys, report).await?;
        resealed += outcome.resealed;
        remaining += outcome.remaining();
        report(ResealStep::Column(outcome));
    }
    Ok((resealed, remaining))
}

/// Re-encrypts one column, in passes until no value is left that a service was changing.
async fn reseal(
    conn: &mut Conn,
    column: SealedColumn,
    keys: &MasterKey,
    report: &mut impl FnMut(ResealStep),
) -> Result<ColumnOutcome> {
    let (began, rng) = (Instant::now(), Rng::system());
    let uses = list_key_uses(conn, column).await?;
    let others = uses.iter().filter(|key_use| key_use.key_id != Some(keys.sealing_id()));
    let mut outcome = ColumnOutcome {
        column,
        to_reseal: others.map(|key_use| key_use.values).sum(),
        resealed: 0,
        postponed: 0,
        unreadable: Vec::new(),
        seconds: 0.0,
    };
    let mut reported = began;
    let mut ticks = tokio::time::interval(PASS_INTERVAL);
    for _ in 0..PASSES {
        ticks.tick().await;
        (outcome.postponed, outcome.unreadable) = (0, Vec::new());
        let mut after = None;
        loop {
            let batch = reseal_batch(conn, column, keys, || rng.bytes(), after.as_deref(), BATCH).await?;
            outcome.resealed += batch.resealed;
            outcome.postponed += batch.postponed;
            outcome.unreadable.extend(batch.unreadable);
            if reported.elapsed() > REPORT_INTERVAL {
                reported = Instant::now();
                let text = format!("{column}: {} of {}", outcome.resealed, outcome.to_reseal);
                report(ResealStep::Progress(text));
            }
            after = batch.next;
            if after.is_none() {
                break;
            }
        }
        if outcome.postponed == 0 {
            break;
        }
    }
    outcome.seconds = began.elapsed().as_secs_f64();
    Ok(outcome)
}
