//! How far a deploy is, written down as it goes on; which also keeps others from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use chrono::TimeDelta;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::App;

/// How many files are done. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress(Arc<(AtomicI32, AtomicI32)>);

impl Progress {
    /// There are so many files.
    pub(crate) fn expect(&self, files: usize) {
        self.0.1.store(i32::try_from(files).unwrap_or(i32::MAX), Ordering::Relaxed);
    }

    /// One more is done.
    pub(crate) fn one_done(&self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> (i32, i32) {
        (self.0.0.load(Ordering::Relaxed), self.0.1.load(Ordering::Relaxed))
    }

    /// Carries out `work` on a leased deploy while this is written down. No statement is left under way:
    /// one that was dropped at the work's end would still be carried out, after whatever follows.
    pub(crate) async fn beside<T>(
        &self,
        app: &App,
        account_id: Uuid,
        deploy_id: Uuid,
        work: impl Future<Output = T>,
    ) -> T {
        let over = Notify::new();
        let work = async {
            let done = work.await;
            over.notify_one();
            done
        };
        tokio::join!(work, self.write_down(app, account_id, deploy_id, &over)).0
    }

    async fn write_down(&self, app: &App, account_id: Uuid, deploy_id: Uuid, over: &Notify) {
        let mut turns = tokio::time::interval(app.deploys.progress_every);
        turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = over.notified() => return,
                _ = turns.tick() => {}
            }
            let written = async {
                let until = app.clock.now() + TimeDelta::from_std(app.deploys.lease).unwrap_or_default();
                let mut conn = store::acquire(&app.db).await?;
                let progress = self.read();
                store::deploys::update_progress(&mut conn, account_id, deploy_id, Some(until), progress).await
            };
            if let Err(error) = written.await {
                tracing::warn!(%error, "a deploy's progress is not written down");
            }
        }
    }

    /// Nobody is at the deploy any more, and nothing of it is done.
    pub(crate) async fn end(app: &App, account_id: Uuid, deploy_id: Uuid) {
        let ended = async {
            let mut conn = store::acquire(&app.db).await?;
            store::deploys::update_progress(&mut conn, account_id, deploy_id, None, (0, 0)).await
        };
        if let Err(error) = ended.await {
            tracing::warn!(%error, "a deploy that failed stays taken for a while");
        }
    }
}
