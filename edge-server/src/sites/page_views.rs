//! Page views, counted in memory and flushed to Postgres in batches.
//!
//! A view is a GET that is answered with the page (200) or with 304, on its site or under `/p/`. Robots count too: these
//! are requests, and analytics counts visitors. While Postgres is unavailable the counts are retained for a bounded number
//! of pages. A crash loses the views since the last flush.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use service::{Rounds, Shutdown};
use store::read_pool::ReadPool;
use uuid::Uuid;

use crate::metrics;

/// Most pages with retained counts while a flush fails.
const MAX_PAGES: usize = 200_000;
/// Pages per statement.
const BATCH: usize = 1_000;

/// The views of one page since the last flush.
#[derive(Debug, Clone)]
pub(crate) struct ViewCounter(Arc<Count>);

#[derive(Debug)]
struct Count {
    page_id: Uuid,
    views: AtomicU32,
}

impl ViewCounter {
    pub(crate) fn new(page_id: Uuid) -> Self {
        Self(Arc::new(Count { page_id, views: AtomicU32::new(0) }))
    }
}

/// Collects the counters of all pages. Counting never waits, and allocates only for a page's first view since the last
/// flush.
pub(crate) struct PageViews {
    lookups: ReadPool,
    /// Receives each counter once when it leaves zero.
    first_views: Sender<ViewCounter>,
    pending: Mutex<Pending>,
}

struct Pending {
    first_views: Receiver<ViewCounter>,
    by_page: HashMap<Uuid, i64>,
}

impl PageViews {
    pub(crate) fn new(lookups: ReadPool) -> Self {
        let (first_views, receiver) = channel();
        let pending = Mutex::new(Pending { first_views: receiver, by_page: HashMap::new() });
        Self { lookups, first_views, pending }
    }

    /// Counts one view.
    pub(crate) fn count(&self, counter: &ViewCounter) {
        if counter.0.views.fetch_add(1, Ordering::Relaxed) == 0 {
            // The receiver lives as long as this sender.
            let _never_closed = self.first_views.send(counter.clone());
        }
    }

    /// Flushes the counts at an interval until `shutdown`.
    pub(crate) async fn flush_every(
        &self,
        interval: Duration,
        rounds: Rounds,
        shutdown: Shutdown,
    ) -> anyhow::Result<()> {
        let mut ticks = tokio::time::interval(interval);
        while shutdown.unless_requested(ticks.tick()).await.is_some() {
            rounds.watch(self.flush()).await;
        }
        Ok(())
    }

    /// Writes the counts to Postgres. Counts that can't be written are retained for the next flush.
    pub(crate) async fn flush(&self) {
        let mut left = self.collect();
        while !left.is_empty() {
            let batch = left.split_off(left.len().saturating_sub(BATCH));
            let write = async |conn: &mut store::Conn| store::views::add_views(conn, &batch).await;
            if let Err(error) = self.lookups.query(write).await {
                tracing::debug!(%error, pages = left.len() + batch.len(), "page views can't be flushed now");
                self.put_back(left.into_iter().chain(batch));
                return;
            }
        }
    }

    /// Removes and returns all counts.
    fn collect(&self) -> Vec<(Uuid, i64)> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let Pending { first_views, by_page } = &mut *pending;
        let mut dropped = 0;
        for counter in first_views.try_iter() {
            // After the reset, the page's next view is a first one again.
            let views = i64::from(counter.0.views.swap(0, Ordering::Relaxed));
            if by_page.len() < MAX_PAGES || by_page.contains_key(&counter.0.page_id) {
                *by_page.entry(counter.0.page_id).or_default() += views;
            } else {
                dropped += views;
            }
        }
        if dropped > 0 {
            metrics::VIEWS_DROPPED.add(dropped.unsigned_abs(), &[]);
        }
        by_page.drain().collect()
    }

    fn put_back(&self, counts: impl Iterator<Item = (Uuid, i64)>) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        for (page_id, views) in counts {
            *pending.by_page.entry(page_id).or_default() += views;
        }
    }
}
