//! One delivery of a segment to one shard: inserts the shard's events, adds them to retention and recomputes their visits.
//! Each part is idempotent, so a kill in between is harmless.
//!
//! Two kinds of events are handled apart. Events of deleted sites are left out, because the deletion may have happened
//! while they waited. Events of unresolved sites are resolved now and inserted under a token of their own, so that the
//! others need not wait for Postgres.
//!
//! ClickHouse remembers a token only for a limited number of inserts. For a segment that may have been inserted longer
//! ago, the events it already has are queried first. ClickHouse stores an insert atomically per month, so whole months
//! are missing; they are inserted under the same token, so that they are not stored twice if the old insert is still
//! running.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use contract::events::Event;
use domain::months::month_of;
use domain::visits::Rules;
use service::Clock;
use store::read_pool::{ReadError, ReadPool};
use tokio::time::Instant;
use uuid::Uuid;
use warehouse::{Shards, Warehouse};

use super::record::Records;
use super::shared_segment::{self, SharedSegment};
use crate::metrics;

/// Older events are inserted only after their sites were found in Postgres. Younger ones are inserted even while
/// Postgres is unavailable: no site can be deleted then.
const MAX_UNCHECKED_AGE: Duration = Duration::from_secs(60);

/// The destinations of events, and the rules by which they become visits.
#[derive(Clone)]
pub(crate) struct Stores {
    pub(crate) warehouse: Warehouse,
    pub(crate) lookups: ReadPool,
    pub(crate) rules: Rules,
}

/// A segment in delivery to one shard.
#[derive(Debug)]
pub(super) struct Shipment {
    pub(super) segment: Arc<SharedSegment>,
    /// The part that is not stored yet.
    part: SegmentPart,
    /// The segment may have been inserted so long ago that ClickHouse no longer remembers its token.
    pub(super) token_may_be_forgotten: bool,
    counted: Counted,
}

/// Which metrics this process has already counted for a segment, so that retries count each event once.
#[derive(Debug, Default)]
struct Counted {
    resolved: bool,
    unresolved: bool,
}

fn once(done: &mut bool, count: impl FnOnce()) {
    if !std::mem::replace(done, true) {
        count();
    }
}

/// The events of a segment that are still to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentPart {
    Whole,
    /// Only the events of unresolved sites.
    UnresolvedSite,
}

impl Shipment {
    pub(super) fn new(segment: Arc<SharedSegment>) -> Self {
        Self {
            token_may_be_forgotten: segment.is_leftover(),
            segment,
            part: SegmentPart::Whole,
            counted: Counted::default(),
        }
    }

    /// Reduces the shipment to a part that is retried later.
    pub(super) fn remaining(self, part: SegmentPart) -> Self {
        Self { part, token_may_be_forgotten: true, ..self }
    }
}

/// Delivers the events of one shard to their stores.
pub(super) struct Delivery {
    pub(super) stores: Stores,
    /// The index of the shard in `shards`.
    pub(super) shard: usize,
    /// All shards, as they were at the start.
    pub(super) shards: Shards,
    pub(super) clock: Clock,
}

/// Why a segment is not in ClickHouse.
#[derive(Debug, thiserror::Error)]
pub(super) enum ShipError {
    #[error(transparent)]
    Warehouse(#[from] warehouse::Error),
    #[error(transparent)]
    Unreadable(#[from] shared_segment::ReadError),
    /// Where rows belong has changed, so the token would not protect against storing them twice.
    #[error(
        "the shards of the cluster have changed: move the rows to their new shards, then restart the collectors (deploy/docs/scaling.md)"
    )]
    ShardsChanged,
    #[error("the service stopped first")]
    Stopped,
}

impl ShipError {
    /// Whether a retry can succeed.
    pub(super) fn retryable(&self) -> bool {
        match self {
            Self::Warehouse(error) => error.retryable(),
            Self::ShardsChanged => true,
            Self::Unreadable(_) | Self::Stopped => false,
        }
    }
}

impl Delivery {
    /// Stores everything possible. Returns the part that must wait for Postgres, if any.
    pub(super) async fn ship(&self, shipment: &mut Shipment) -> Result<Option<SegmentPart>, ShipError> {
        let Shipment { segment, part, token_may_be_forgotten, counted } = shipment;
        let Records { mut events, .. } = segment.read()?;
        let unresolved: Vec<Event> = events.extract_if(.., |event| !event.site_token.is_empty()).collect();
        events.retain(|event| self.is_own(event));
        if *part == SegmentPart::Whole && !events.is_empty() {
            match self.existing_sites(&events).await {
                Ok(sites) => events.retain(|event| sites.contains(&event.site_id)),
                Err(_) if segment.age(&self.clock) < MAX_UNCHECKED_AGE => {}
                Err(error) => return Ok(wait_for_postgres(segment, SegmentPart::Whole, &error)),
            }
            let stored =
                self.store(&segment.token(self.shard, &self.shards), events, *token_may_be_forgotten).await?;
            once(&mut counted.resolved, || count_inserted(stored));
        }
        if unresolved.is_empty() { Ok(None) } else { self.ship_unresolved(shipment, unresolved).await }
    }

    async fn ship_unresolved(
        &self,
        Shipment { segment, token_may_be_forgotten, counted, .. }: &mut Shipment,
        mut events: Vec<Event>,
    ) -> Result<Option<SegmentPart>, ShipError> {
        let tokens: HashSet<&str> = events.iter().map(|event| event.site_token.as_str()).collect();
        let tokens: Vec<String> = tokens.into_iter().map(str::to_owned).collect();
        let list = async |conn: &mut store::Conn| store::sites::list_owners(conn, &tokens).await;
        let owners = match self.stores.lookups.query(list).await {
            Ok(owners) => owners,
            Err(error) => return Ok(wait_for_postgres(segment, SegmentPart::UnresolvedSite, &error)),
        };
        let unknown = events.extract_if(.., |event| !owners.contains_key(&event.site_token)).count();
        let mut events_by_account: HashMap<Uuid, i64> = HashMap::new();
        for event in &mut events {
            if let Some(owner) = owners.get(&event.site_token) {
                (event.site_id, event.account_id) = (owner.site_id, owner.account_id);
                *events_by_account.entry(owner.account_id).or_default() += 1;
            }
        }
        // The suffix is part of stored tokens and must not change.
        let token = format!("{}-unheard", segment.token(self.shard, &self.shards));
        events.retain(|event| self.is_own(event));
        let stored = self.store(&token, events, *token_may_be_forgotten).await?;
        once(&mut counted.unresolved, || count_inserted(stored));
        segment.count_unknown(unknown);
        // Charged even beyond the limit, and once per segment, however often this is repeated and by which shard.
        let events_by_account: Vec<(Uuid, i64)> = events_by_account.into_iter().collect();
        let now = self.clock.now();
        let charge = async |conn: &mut store::Conn| {
            store::monthly_usage::charge_held_events(
                conn,
                segment.id(),
                month_of(now),
                &events_by_account,
                now,
            )
            .await
        };
        match self.stores.lookups.query(charge).await {
            Ok(()) => Ok(None),
            Err(error) => Ok(wait_for_postgres(segment, SegmentPart::UnresolvedSite, &error)),
        }
    }

    /// Whether an event of a resolved site belongs to this shard.
    fn is_own(&self, event: &Event) -> bool {
        self.shards.shard_of(event.site_id) == self.shard
    }

    async fn existing_sites(&self, events: &[Event]) -> Result<HashSet<Uuid>, ReadError> {
        let sites: HashSet<Uuid> = events.iter().map(|event| event.site_id).collect();
        let sites: Vec<Uuid> = sites.into_iter().collect();
        let list = async |conn: &mut store::Conn| store::sites::list_existing(conn, &sites).await;
        self.stores.lookups.query(list).await
    }

    /// Returns the number of events that are in ClickHouse afterwards, including those inserted before.
    async fn store(
        &self,
        token: &str,
        mut events: Vec<Event>,
        token_may_be_forgotten: bool,
    ) -> Result<usize, ShipError> {
        if events.is_empty() {
            return Ok(0);
        }
        let Stores { warehouse, rules, .. } = &self.stores;
        if warehouse.list_shards().await? != self.shards {
            return Err(ShipError::ShardsChanged);
        }
        let stored =
            if token_may_be_forgotten { warehouse.list_stored_ids(&events).await? } else { HashSet::new() };
        let stored: Vec<Event> = events.extract_if(.., |event| stored.contains(&event.id)).collect();
        if !events.is_empty() {
            let started = Instant::now();
            warehouse.insert_events(token, &events).await?;
            metrics::SEGMENT_INSERT_SECONDS.record(started.elapsed(), &[]);
        }
        // The process that inserted the stored events may have died before the next statements.
        events.extend(stored);
        warehouse.insert_retention(&events).await?;
        let started = Instant::now();
        warehouse.recompute_visits(&events, *rules).await?;
        metrics::VISITS_RECOMPUTE_SECONDS.record(started.elapsed(), &[]);
        Ok(events.len())
    }
}

fn count_inserted(events: usize) {
    metrics::EVENTS_INSERTED.add(events as u64, &[]);
}

fn wait_for_postgres(segment: &SharedSegment, part: SegmentPart, error: &ReadError) -> Option<SegmentPart> {
    tracing::warn!(%error, segment = %segment.id(), ?part, "events wait until Postgres can resolve their sites");
    Some(part)
}
