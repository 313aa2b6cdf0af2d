//! Reports the progress of a deploy to the database. Each report also renews the deploy's lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use chrono::TimeDelta;
use store::deploys::Status;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::App;

/// Counters of finished and expected files. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress(Arc<(AtomicI32, AtomicI32)>);

impl Progress {
    /// Sets the number of files.
    pub(crate) fn set_total(&self, files: usize) {
        self.0.1.store(i32::try_from(files).unwrap_or(i32::MAX), Ordering::Relaxed);
    }

    /// Counts one finished file.
    pub(crate) fn file_done(&self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> (i32, i32) {
        (self.0.0.load(Ordering::Relaxed), self.0.1.load(Ordering::Relaxed))
    }

    /// Runs `work` on a leased deploy with this status, which `work` may change, and reports progress meanwhile. Waits for a report in progress before it
    /// returns: Postgres would still execute an abandoned statement, after the statements that follow.
    pub(crate) async fn report_while<T>(
        &self,
        app: &App,
        account_id: Uuid,
        deploy: (Uuid, Status),
        work: impl Future<Output = T>,
    ) -> T {
        let stop = Notify::new();
        let work = async {
            let output = work.await;
            stop.notify_one();
            output
        };
        tokio::join!(work, self.report(app, account_id, deploy, &stop)).0
    }

    async fn report(&self, app: &App, account_id: Uuid, (id, status): (Uuid, Status), stop: &Notify) {
        let mut ticks = service::ticks(app.deploys.progress_interval);
        loop {
            tokio::select! {
                () = stop.notified() => return,
                _ = ticks.tick() => {}
            }
            let updated = async {
                let until = app.clock.now() + TimeDelta::from_std(app.deploys.lease_ttl).unwrap_or_default();
                let mut conn = store::acquire(&app.db).await?;
                let progress = self.read();
                store::deploys::update_progress(&mut conn, account_id, id, status, Some(until), progress)
                    .await
            };
            if let Err(error) = updated.await {
                tracing::warn!(%error, "failed to report the progress of a deploy");
            }
        }
    }

    /// Releases the lease of a failed deploy and resets its counters.
    pub(crate) async fn release(app: &App, account_id: Uuid, (id, status): (Uuid, Status)) {
        let released = async {
            let mut conn = store::acquire(&app.db).await?;
            store::deploys::update_progress(&mut conn, account_id, id, status, None, (0, 0)).await
        };
        if let Err(error) = released.await {
            tracing::warn!(%error, "failed to release a deploy; it stays leased until its lease expires");
        }
    }
}
