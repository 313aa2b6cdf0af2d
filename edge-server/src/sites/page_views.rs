//! How often pages are viewed, counted in memory and written down in batches.
//!
//! A view is a GET of a page that is answered with it (200) or with "you have it" (304), on its site or under
//! `/p/`. Who asks is not looked at: these are requests, robots among them. Visitors are what analytics counts.
//! While Postgres is away counts are kept, for a bounded number of pages; so is what a crash would lose, which is
//! what was counted since the last flush.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use service::Shutdown;
use uuid::Uuid;

use crate::read_pool::ReadPool;

/// Of so many pages counts are kept while they can't be written.
const PAGES_MAX: usize = 200_000;
/// So many are written in one statement.
const BATCH: usize = 1_000;

/// The views of one page that nobody has collected yet.
#[derive(Debug, Clone)]
pub(crate) struct Tally(Arc<Count>);

#[derive(Debug)]
struct Count {
    page_id: Uuid,
    views: AtomicU32,
}

impl Tally {
    /// None yet.
    pub(crate) fn of(page_id: Uuid) -> Self {
        Self(Arc::new(Count { page_id, views: AtomicU32::new(0) }))
    }
}

/// Counts views. Nothing waits and, but for the first view of a page since the last flush, nothing is allocated.
pub(crate) struct Views {
    lookups: ReadPool,
    /// Tallies that are no longer at nought, each once.
    begun: Sender<Tally>,
    waiting: Mutex<Waiting>,
}

/// What is to be written down.
struct Waiting {
    begun: Receiver<Tally>,
    by_page: HashMap<Uuid, i64>,
}

impl Views {
    pub(crate) fn new(lookups: ReadPool) -> Self {
        let (begun, receiver) = channel();
        let waiting = Mutex::new(Waiting { begun: receiver, by_page: HashMap::new() });
        Self { lookups, begun, waiting }
    }

    /// Counts one view.
    pub(crate) fn count(&self, tally: &Tally) {
        if tally.0.views.fetch_add(1, Ordering::Relaxed) == 0 {
            // The receiver lives as long as this sender.
            let _never_gone = self.begun.send(tally.clone());
        }
    }

    /// Writes down what was counted every `period` until `shutdown`.
    ///
    /// # Errors
    /// None: what can't be written now is written later.
    pub(crate) async fn flush_every(&self, period: Duration, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut ticks = tokio::time::interval(period);
        while shutdown.unless_requested(ticks.tick()).await.is_some() {
            self.flush().await;
        }
        Ok(())
    }

    /// Writes down what was counted so far; what can't be written stays for the next time.
    pub(crate) async fn flush(&self) {
        let mut left = self.collect();
        while !left.is_empty() {
            let batch = left.split_off(left.len().saturating_sub(BATCH));
            let write = async |conn: &mut store::Conn| store::views::add_views(conn, &batch).await;
            if let Err(error) = self.lookups.query(write).await {
                tracing::debug!(%error, pages = left.len() + batch.len(), "views wait to be written down");
                self.put_back(left.into_iter().chain(batch));
                return;
            }
        }
    }

    /// Takes everything that waits.
    fn collect(&self) -> Vec<(Uuid, i64)> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Waiting { begun, by_page } = &mut *waiting;
        let mut lost = 0;
        for tally in begun.try_iter() {
            // From here on its next view is a first one again.
            let views = i64::from(tally.0.views.swap(0, Ordering::Relaxed));
            if by_page.len() < PAGES_MAX || by_page.contains_key(&tally.0.page_id) {
                *by_page.entry(tally.0.page_id).or_default() += views;
            } else {
                lost += views;
            }
        }
        if lost > 0 {
            service::metrics::counter("edge_view_drop_total").add(lost.unsigned_abs(), &[]);
        }
        by_page.drain().collect()
    }

    fn put_back(&self, counts: impl Iterator<Item = (Uuid, i64)>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for (page_id, views) in counts {
            *waiting.by_page.entry(page_id).or_default() += views;
        }
    }
}
