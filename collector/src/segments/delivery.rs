//! What is done with a segment's events, once: inserted, noted for retention, made into visits. All of it may be done
//! again, so that a kill in between costs nothing.
//!
//! Two kinds of events go ways of their own. Those of sites that are gone are left out: a deletion may have come
//! while they waited. And those whose site couldn't be looked up when they were taken are looked up now, and inserted
//! under a token of their own, so that the others needn't wait for Postgres.
//!
//! ClickHouse knows a token only for so many inserts. Of what may have been inserted long ago it is asked which events
//! it has. It stores an insert whole or not at all by the month, so what is missing are whole months, and goes in
//! under the same token: should the insert of long ago still be under way, they can't both be stored.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use contract::events::Event;
use domain::months::month_of;
use service::{Clock, metrics};
use store::lookups::NoAnswer;
use tokio::time::Instant;
use uuid::Uuid;

use super::Stores;
use super::folder::SealedSegment;
use super::record::{self, Records, UnknownRecord};

/// Events older than this are inserted only when it is known that their sites are still there. Younger ones are, too,
/// while Postgres is away: nobody can delete a site then.
const YOUNG: Duration = Duration::from_secs(60);

/// A segment on its way.
#[derive(Debug)]
pub(super) struct Shipment {
    pub(super) segment: SealedSegment,
    /// What of it is to be stored yet.
    part: SegmentPart,
    /// It may have been inserted so long ago that its token is forgotten.
    pub(super) doubtful: bool,
    counted: Counted,
}

/// What this process has counted of a segment: however often it is tried, each event is counted once.
#[derive(Debug, Default)]
struct Counted {
    skipped: bool,
    heard: bool,
    unheard: bool,
}

/// Counts, unless that was done.
fn once(done: &mut bool, count: impl FnOnce()) {
    if !std::mem::replace(done, true) {
        count();
    }
}

/// Of a segment's events …
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentPart {
    /// … all.
    Whole,
    /// … those whose sites are still unknown.
    UnresolvedSite,
}

impl Shipment {
    pub(super) fn new(segment: SealedSegment) -> Self {
        Self { doubtful: segment.leftover, segment, part: SegmentPart::Whole, counted: Counted::default() }
    }

    /// What is left when all but this part is stored, to be tried again some time.
    pub(super) fn left(self, part: SegmentPart) -> Self {
        Self { part, doubtful: true, ..self }
    }
}

/// Takes segments to where their events belong.
pub(super) struct Delivery {
    pub(super) stores: Stores,
    pub(super) clock: Clock,
}

/// Why a segment isn't in ClickHouse.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unshipped {
    #[error(transparent)]
    Warehouse(#[from] warehouse::Error),
    #[error("reading: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error(transparent)]
    UnknownRecord(#[from] UnknownRecord),
    #[error("the service stopped first")]
    Stopped,
}

impl Unshipped {
    /// Whether trying again can help.
    pub(super) fn retryable(&self) -> bool {
        match self {
            Self::Warehouse(error) => error.retryable(),
            Self::Unreadable(_) | Self::UnknownRecord(_) | Self::Stopped => false,
        }
    }
}

impl Delivery {
    /// Stores what can be stored now, and gives the part that waits for Postgres.
    pub(super) async fn ship(&self, shipment: &mut Shipment) -> Result<Option<SegmentPart>, Unshipped> {
        let Shipment { segment, part, doubtful, counted } = shipment;
        let Records { mut events, skipped } = read(&segment.path)?;
        if skipped > 0 {
            once(&mut counted.skipped, || {
                tracing::warn!(skipped, segment = %segment.id, "torn or damaged lines are passed over");
                metrics::counter("collector_records_skipped_total").add(skipped, &[]);
            });
        }
        let unheard: Vec<Event> = events.extract_if(.., |event| !event.site_token.is_empty()).collect();
        if *part == SegmentPart::Whole && !events.is_empty() {
            match self.existing(&events).await {
                Ok(sites) => events.retain(|event| sites.contains(&event.site_id)),
                Err(_) if segment.age(&self.clock) < YOUNG => {}
                Err(error) => return Ok(waits(segment, SegmentPart::Whole, &error)),
            }
            let stored = self.store(&segment.id.to_string(), events, *doubtful).await?;
            once(&mut counted.heard, || count_stored(stored));
        }
        if unheard.is_empty() { Ok(None) } else { self.ship_unheard(shipment, unheard).await }
    }

    async fn ship_unheard(
        &self,
        Shipment { segment, doubtful, counted, .. }: &mut Shipment,
        mut events: Vec<Event>,
    ) -> Result<Option<SegmentPart>, Unshipped> {
        let tokens: HashSet<&str> = events.iter().map(|event| event.site_token.as_str()).collect();
        let tokens: Vec<String> = tokens.into_iter().map(str::to_owned).collect();
        let look_up = async |conn: &mut store::Conn| store::sites::list_owners(conn, &tokens).await;
        let owners = match self.stores.lookups.ask(look_up).await {
            Ok(owners) => owners,
            Err(error) => return Ok(waits(segment, SegmentPart::UnresolvedSite, &error)),
        };
        let unknown = events.extract_if(.., |event| !owners.contains_key(&event.site_token)).count();
        let mut taken: HashMap<Uuid, i64> = HashMap::new();
        for event in &mut events {
            if let Some(owner) = owners.get(&event.site_token) {
                (event.site_id, event.account_id) = (owner.site_id, owner.account_id);
                *taken.entry(owner.account_id).or_default() += 1;
            }
        }
        let stored = self.store(&format!("{}-unheard", segment.id), events, *doubtful).await?;
        once(&mut counted.unheard, || {
            count_stored(stored);
            let reason = [("reason", "unknown_site")];
            metrics::counter("collector_events_dropped_total").add(unknown as u64, &reason);
        });
        // They have happened, whatever the limit; they are charged once, however often this is done.
        let taken: Vec<(Uuid, i64)> = taken.into_iter().collect();
        let now = self.clock.now();
        let charge = async |conn: &mut store::Conn| {
            store::months::charge_held_events(conn, segment.id, month_of(now), &taken, now).await
        };
        match self.stores.lookups.ask(charge).await {
            Ok(()) => Ok(None),
            Err(error) => Ok(waits(segment, SegmentPart::UnresolvedSite, &error)),
        }
    }

    async fn existing(&self, events: &[Event]) -> Result<HashSet<Uuid>, NoAnswer> {
        let sites: HashSet<Uuid> = events.iter().map(|event| event.site_id).collect();
        let sites: Vec<Uuid> = sites.into_iter().collect();
        let list = async |conn: &mut store::Conn| store::sites::list_existing(conn, &sites).await;
        self.stores.lookups.ask(list).await
    }

    /// Gives how many are in ClickHouse then, be it since now or before.
    async fn store(&self, token: &str, mut events: Vec<Event>, doubtful: bool) -> Result<usize, Unshipped> {
        if events.is_empty() {
            return Ok(0);
        }
        let Stores { warehouse, rules, .. } = &self.stores;
        let stored = if doubtful { warehouse.list_stored_ids(&events).await? } else { HashSet::new() };
        let stored: Vec<Event> = events.extract_if(.., |event| stored.contains(&event.id)).collect();
        if !events.is_empty() {
            let begun = Instant::now();
            warehouse.insert_events(token, &events).await?;
            metrics::histogram("collector_segment_insert_seconds").record_elapsed(begun.elapsed(), &[]);
        }
        // Whoever inserted the others may have died before doing these with them.
        events.extend(stored);
        warehouse.insert_retention(&events).await?;
        let begun = Instant::now();
        warehouse.recompute_visits(&events, *rules).await?;
        metrics::histogram("collector_visits_recompute_seconds").record_elapsed(begun.elapsed(), &[]);
        Ok(events.len())
    }
}

fn count_stored(events: usize) {
    metrics::counter("collector_events_inserted_total").add(events as u64, &[]);
}

fn waits(segment: &SealedSegment, part: SegmentPart, error: &NoAnswer) -> Option<SegmentPart> {
    tracing::warn!(%error, segment = %segment.id, ?part, "events wait until Postgres says whose they are");
    Some(part)
}

fn read(path: &Path) -> Result<Records, Unshipped> {
    // Megabytes of JSON: the shipper has a thread of its own.
    Ok(record::decode(&std::fs::read(path)?)?)
}
