//! Writes down how attempts ended, many at a time: while one commit is under way, and a moment longer, the next gather.

use std::time::Duration;

use domain::Fault as _;
use store::deliveries::{Outcome, finish_all};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::Runner;

const AT_ONCE: usize = 512;
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// An attempt that has ended, and who waits until that is written down.
pub(crate) struct Ended {
    pub(crate) delivery_id: Uuid,
    pub(crate) attempt: i32,
    pub(crate) outcome: Outcome,
    pub(crate) written: oneshot::Sender<()>,
}

/// Runs until every sender is gone and everything sent is written, or given up.
pub(crate) async fn run(
    runner: Runner,
    patience: Duration,
    gather_for: Duration,
    mut ended: mpsc::UnboundedReceiver<Ended>,
) {
    let mut gathered = Vec::with_capacity(AT_ONCE);
    while ended.recv_many(&mut gathered, AT_ONCE).await > 0 {
        let (rows, waiting): (Vec<_>, Vec<_>) =
            gathered.drain(..).map(|one| ((one.delivery_id, one.attempt, one.outcome), one.written)).unzip();
        match tokio::time::timeout(patience, write(&runner, &rows)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!(error = format!("{error:#}"), "an attempt's end can't be written down");
                alone(&runner, rows).await;
            }
            // The leases are over, or nearly: they are sent again, under the same ids.
            Err(_elapsed) => {
                tracing::warn!(attempts = rows.len(), "attempts' ends couldn't be written in time");
            }
        }
        drop(waiting);
        pause(gather_for).await;
    }
}

/// All in one statement, again and again while Postgres is away.
async fn write(runner: &Runner, rows: &[(Uuid, i32, Outcome)]) -> Result<(), store::Error> {
    loop {
        let written = async {
            let mut conn = store::acquire(&runner.deliveries_db).await?;
            finish_all(&mut conn, rows).await
        };
        match written.await {
            Err(error) if error.is_unavailable() => {
                tracing::warn!(%error, attempts = rows.len(), "attempts' ends wait for Postgres");
                pause(AFTER_ERROR).await;
            }
            written => return written,
        }
    }
}

/// One that can't be written must not take the others with it.
async fn alone(runner: &Runner, rows: Vec<(Uuid, i32, Outcome)>) {
    for row in rows {
        let delivery_id = row.0;
        if let Err(error) = write(runner, &[row]).await {
            tracing::error!(error = format!("{error:#}"), %delivery_id, "its attempt is made again after its lease");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "until Postgres is asked again, or enough has gathered")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
