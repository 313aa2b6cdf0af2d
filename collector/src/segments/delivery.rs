//! What is done with a segment's events, once: inserted, noted for retention, made into visits. All of it may be done
//! again, so that a kill in between costs nothing.
//!
//! Two kinds of events go ways of their own. Those of sites that are gone are left out: a deletion may have come
//! while they waited. And those whose site couldn't be looked up when they were taken are looked up now, and inserted
//! under a token of their own, so that the others needn't wait for Postgres.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use contract::events::Event;
use domain::months::month_of;
use service::{Clock, metrics};
use tokio::time::Instant;
use uuid::Uuid;

use super::Stores;
use super::folder::SealedSegment;
use super::line::{self, Foreign, Lines};

/// Events older than this are inserted only when it is known that their sites are still there. Younger ones are, too,
/// while Postgres is away: nobody can delete a site then.
const YOUNG: Duration = Duration::from_secs(60);

/// Takes segments to where their events belong.
pub(super) struct Delivery {
    pub(super) stores: Stores,
    pub(super) clock: Clock,
}

/// How much of a segment is stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shipped {
    /// All of it.
    Whole,
    /// All but the events whose sites are still unknown.
    ButUnheard,
}

/// Why a segment isn't in ClickHouse.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unshipped {
    #[error(transparent)]
    Warehouse(#[from] warehouse::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("reading: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error(transparent)]
    Foreign(#[from] Foreign),
    #[error("the service stopped first")]
    Stopped,
}

impl Unshipped {
    /// Whether trying again can help.
    pub(super) fn retryable(&self) -> bool {
        match self {
            Self::Warehouse(error) => error.retryable(),
            Self::Store(_) => true,
            Self::Unreadable(_) | Self::Foreign(_) | Self::Stopped => false,
        }
    }
}

impl Delivery {
    /// Stores what can be stored now.
    pub(super) async fn ship(&self, segment: &SealedSegment) -> Result<Shipped, Unshipped> {
        let Lines { mut events, skipped } = read(&segment.path).await?;
        if skipped > 0 {
            tracing::warn!(skipped, segment = %segment.id, "torn or damaged lines are passed over");
            metrics::counter("collector_line_skip_total").add(skipped, &[]);
        }
        let unheard: Vec<Event> = events.extract_if(.., |event| !event.site_token.is_empty()).collect();
        match self.existing(&events).await {
            Ok(sites) => events.retain(|event| sites.contains(&event.site_id)),
            Err(_) if age(segment.id, &self.clock) < YOUNG => {}
            Err(error) => return Err(error.into()),
        }
        self.store(&segment.id.to_string(), &events).await?;
        if unheard.is_empty() {
            return Ok(Shipped::Whole);
        }
        match self.store_unheard(segment, unheard).await {
            Ok(()) => Ok(Shipped::Whole),
            Err(Unshipped::Store(error)) => {
                tracing::warn!(%error, segment = %segment.id, "events of sites unheard of wait");
                Ok(Shipped::ButUnheard)
            }
            Err(error) => Err(error),
        }
    }

    /// Stores the rest of a segment.
    pub(super) async fn ship_unheard(&self, segment: &SealedSegment) -> Result<(), Unshipped> {
        let mut events = read(&segment.path).await?.events;
        events.retain(|event| !event.site_token.is_empty());
        self.store_unheard(segment, events).await
    }

    async fn store_unheard(&self, segment: &SealedSegment, mut events: Vec<Event>) -> Result<(), Unshipped> {
        let mut conn = store::acquire(&self.stores.db).await?;
        let mut owners = HashMap::new();
        for token in events.iter().map(|event| event.site_token.clone()).collect::<HashSet<_>>() {
            if let Some(owner) = store::sites::find_owner_by_token(&mut conn, &token).await? {
                owners.insert(token, owner);
            }
        }
        let unknown = events.extract_if(.., |event| !owners.contains_key(&event.site_token)).count();
        metrics::counter("collector_event_dropped_total").add(unknown as u64, &[("reason", "unknown_site")]);
        let mut taken: HashMap<Uuid, i64> = HashMap::new();
        for event in &mut events {
            if let Some(owner) = owners.get(&event.site_token) {
                (event.site_id, event.account_id) = (owner.site_id, owner.account_id);
                *taken.entry(owner.account_id).or_default() += 1;
            }
        }
        self.store(&format!("{}-unheard", segment.id), &events).await?;
        // They have happened, whatever the limit. A kill right here counts them twice against it, not in figures.
        let month = month_of(self.clock.now());
        for (account_id, count) in taken {
            store::months::charge_events(&mut conn, account_id, month, count).await?;
        }
        Ok(())
    }

    async fn existing(&self, events: &[Event]) -> Result<HashSet<Uuid>, store::Error> {
        let sites: Vec<Uuid> =
            events.iter().map(|event| event.site_id).collect::<HashSet<_>>().into_iter().collect();
        let mut conn = store::acquire(&self.stores.db).await?;
        store::sites::list_existing(&mut conn, &sites).await
    }

    async fn store(&self, token: &str, events: &[Event]) -> Result<(), Unshipped> {
        if events.is_empty() {
            return Ok(());
        }
        let Stores { warehouse, rules, .. } = &self.stores;
        let begun = Instant::now();
        warehouse.insert_events(token, events).await?;
        metrics::histogram("collector_segment_insert_seconds").record_elapsed(begun.elapsed(), &[]);
        metrics::counter("collector_event_insert_total").add(events.len() as u64, &[]);
        warehouse.insert_returns(events).await?;
        let begun = Instant::now();
        warehouse.recount_visits(events, *rules).await?;
        metrics::histogram("collector_visits_recount_seconds").record_elapsed(begun.elapsed(), &[]);
        Ok(())
    }
}

/// How long ago that was, of a version 7 id.
pub(super) fn age(id: Uuid, clock: &Clock) -> Duration {
    let begun = id.get_timestamp().map_or(Duration::ZERO, |time| {
        let (seconds, nanoseconds) = time.to_unix();
        Duration::new(seconds, nanoseconds)
    });
    let now = Duration::from_millis(u64::try_from(clock.now().timestamp_millis()).unwrap_or_default());
    now.saturating_sub(begun)
}

async fn read(path: &Path) -> Result<Lines, Unshipped> {
    let bytes = tokio::fs::read(path).await?;
    // Megabytes of JSON: not on a thread that serves requests.
    let lines =
        tokio::task::spawn_blocking(move || line::decode(&bytes)).await.map_err(std::io::Error::other)?;
    Ok(lines?)
}
