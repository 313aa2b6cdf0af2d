//! Recomputes visits from all events of their visitors: reads, applies the rules, writes, and checks for new events.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use contract::events::Event;
use domain::visits::{Rules, Step, Tally, VisitInProgress, visits_of};

use super::queries::StoredEvents;
use super::rows::{Origin, Origins, RecordedVisit, StoredRow, VisitRow};
use super::visitor_links::{DailyId, VisitorLinks};
use crate::client::Warehouse;
use crate::error::Error;

/// Visitors per batch. Bounds the memory and the size of statements; halved if the server's limits are exceeded.
const BATCH_SIZE: usize = 10_000;
/// Repetitions after concurrent writes. After that, the other writer's own check repairs the result.
const MAX_ATTEMPTS: u32 = 10;

/// The data read about some visitors.
#[derive(Default)]
struct VisitorData {
    links: VisitorLinks,
    steps: HashMap<DailyId, Vec<Step<Arc<Origin>>>>,
    /// The tally of the events read, by id.
    tallies: HashMap<DailyId, Tally>,
    /// The highest stored version, by id.
    versions: HashMap<DailyId, u64>,
    origins: Origins,
    /// The ids with all their events read.
    ids: HashSet<DailyId>,
}

impl Warehouse {
    /// Updates the visits that these stored events belong to. Idempotent, safe to run concurrently and in any order; a
    /// retry repairs the effects of an error.
    pub async fn recompute_visits(&self, events: &[Event], rules: Rules) -> Result<(), Error> {
        let touched = match self.extend_sessions(events, rules).await {
            Err(error) if error.is_server_limit() => events
                .iter()
                .map(|event| DailyId::at(event.site_id, event.visitor, event.received_at))
                .collect(),
            ids => ids?,
        };
        // In the order of the table.
        let mut touched: Vec<DailyId> = touched.into_iter().collect();
        touched.sort_unstable();
        let mut batches: Vec<Vec<DailyId>> = touched.chunks(BATCH_SIZE).map(<[DailyId]>::to_vec).collect();
        while let Some(batch) = batches.pop() {
            match self.recompute_until_settled(&batch, rules).await {
                Err(error) if error.is_server_limit() && batch.len() > 1 => {
                    let (left, right) = batch.split_at(batch.len() / 2);
                    batches.extend([left.to_vec(), right.to_vec()]);
                }
                settled => settled?,
            }
        }
        Ok(())
    }

    async fn recompute_until_settled(&self, touched: &[DailyId], rules: Rules) -> Result<(), Error> {
        let mut unsettled = touched.to_vec();
        for _ in 0..MAX_ATTEMPTS {
            unsettled = self.recompute(&unsettled, rules).await?;
            if unsettled.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the ids with events that were stored in the meantime.
    async fn recompute(&self, touched: &[DailyId], rules: Rules) -> Result<Vec<DailyId>, Error> {
        let mut known = VisitorData::default();
        let own: HashSet<DailyId> = touched.iter().copied().collect();
        self.load_events(&own, &mut known).await?;
        // These events can change visits that began under their own ids and under the ids before and after.
        let adjacent = self.adjacent_ids(&own, &known).await?;
        self.load_events(&adjacent, &mut known).await?;
        let further = self.adjacent_ids(&adjacent, &known).await?;
        self.load_events(&further, &mut known).await?;

        let changed: HashSet<DailyId> = own.union(&adjacent).copied().collect();
        let earlier =
            known.ids.iter().filter_map(|id| known.links.before(*id)).filter(|id| !known.ids.contains(id));
        let stored = self.list_stored_visits(&earlier.collect()).await?;
        let recorded = self.list_recorded_visits(&changed).await?;
        for visit in &recorded {
            let version = known.versions.entry(visit.id()).or_default();
            *version = visit.version.max(*version);
        }
        self.insert_visits(&mut known, &changed, &stored, &recorded, rules).await?;
        let counts = self.count_events(&known.ids).await?;
        Ok(touched.iter().copied().filter(|id| known.is_outdated(*id, &counts)).collect())
    }

    /// Reads the events of these ids.
    async fn load_events(&self, ids: &HashSet<DailyId>, known: &mut VisitorData) -> Result<(), Error> {
        let VisitorData { links, steps, tallies, origins, .. } = &mut *known;
        self.for_each_event(ids, |row| {
            let id = row.id();
            links.add(id, row.previous);
            let step = row.into_step(origins);
            let tally = tallies.entry(id).or_default();
            *tally = *tally + Tally::of(step.at);
            steps.entry(id).or_default().push(step);
        })
        .await?;
        known.ids.extend(ids);
        Ok(())
    }

    /// Returns the ids before and after these that were not read yet.
    async fn adjacent_ids(
        &self,
        ids: &HashSet<DailyId>,
        known: &VisitorData,
    ) -> Result<HashSet<DailyId>, Error> {
        let before = ids.iter().filter_map(|id| known.links.before(*id));
        let after = self.next_day_ids(ids).await?.into_values();
        Ok(before.chain(after).filter(|id| !known.ids.contains(id)).collect())
    }

    async fn insert_visits(
        &self,
        known: &mut VisitorData,
        changed: &HashSet<DailyId>,
        stored: &[StoredRow],
        recorded: &[RecordedVisit],
        rules: Rules,
    ) -> Result<(), Error> {
        let mut visitors: HashMap<DailyId, Vec<Step<Arc<Origin>>>> = HashMap::new();
        for (id, mut steps) in std::mem::take(&mut known.steps) {
            visitors.entry(known.links.first(id, &known.ids)).or_default().append(&mut steps);
        }
        let visits: Vec<_> = visitors
            .into_iter()
            .flat_map(|(first, mut steps)| {
                let before = known.links.before(first).and_then(|earlier| last_visit(earlier, stored));
                let visits = visits_of(&mut steps, before, rules);
                visits
                    .into_iter()
                    .map(move |visit| (DailyId::at(first.site, visit.visitor, visit.start), visit))
            })
            .filter(|(id, _)| changed.contains(id))
            .collect();
        let current: HashSet<_> = visits.iter().map(|(id, visit)| (*id, visit.start)).collect();
        // Deleted visits are deleted again: another collector may be writing one that it read before.
        let deleted = recorded.iter().filter(|visit| !current.contains(&(visit.id(), visit.start)));
        let deleted = deleted.map(|visit| VisitRow::deleted(visit, known.version(visit.id())));
        let rows = visits.iter().map(|(id, visit)| VisitRow::of(id.site, visit, known.version(*id)));
        self.insert_rows(&rows.chain(deleted).collect::<Vec<_>>()).await
    }
}

impl VisitorData {
    /// Whether the events changed that determine the visits of this id or of the days before and after.
    fn is_outdated(&self, id: DailyId, counts: &HashMap<DailyId, StoredEvents>) -> bool {
        let (before, after) = (self.links.before(id), self.links.after(id));
        let further =
            [before.and_then(|id| self.links.before(id)), after.and_then(|id| self.links.after(id))];
        let mut chain = [Some(id), before, after].into_iter().chain(further).flatten();
        let read = |id: &DailyId| self.tallies.get(id).copied().unwrap_or_default();
        let stored = |id: &DailyId| counts.get(id).map(|count| count.tally).unwrap_or_default();
        chain.any(|id| self.ids.contains(&id) && stored(&id) != read(&id))
    }

    /// The number of events that determine the visits of this id, and at least the stored version: links between days
    /// expire, which reduces the number.
    fn version(&self, id: DailyId) -> u64 {
        let ids = [Some(id), self.links.before(id), self.links.after(id)];
        let counted = ids
            .into_iter()
            .flatten()
            .filter_map(|id| self.tallies.get(&id))
            .map(|tally| u64::from(tally.steps));
        counted.sum::<u64>().max(self.versions.get(&id).copied().unwrap_or_default())
    }
}

/// The last stored visit of this id, which may continue.
fn last_visit(id: DailyId, stored: &[StoredRow]) -> Option<VisitInProgress> {
    let last = stored.iter().filter(|row| row.id() == id).max_by_key(|row| row.start)?;
    Some(VisitInProgress { start: last.start, last: last.ended })
}

#[cfg(test)]
mod tests {
    use chrono::{Days, NaiveDate};
    use uuid::Uuid;

    use super::*;

    fn id(day: u64, visitor: u64) -> DailyId {
        DailyId {
            day: NaiveDate::default() + Days::new(day),
            site: Uuid::nil(),
            visitor: visitor * 100 + day,
        }
    }

    #[test]
    fn ids_are_outdated_if_events_within_two_days_changed() {
        let mut known = VisitorData::default();
        for visitor in [1, 2] {
            for day in 1..=5 {
                known.ids.insert(id(day, visitor));
                known.tallies.insert(id(day, visitor), Tally { steps: 2, times: 7 });
                known.links.add(id(day, visitor), id(day - 1, visitor).visitor);
            }
        }
        let stored = |tally: &Tally| StoredEvents { tally: *tally, has_previous: false };
        let mut counts: HashMap<DailyId, StoredEvents> =
            known.tallies.iter().map(|(id, tally)| (*id, stored(tally))).collect();
        let outdated = |counts: &HashMap<DailyId, StoredEvents>| -> Vec<u64> {
            let both = [1, 2].into_iter().flat_map(|visitor| (1..=5).map(move |day| id(day, visitor)));
            both.filter(|id| known.is_outdated(*id, counts)).map(|id| id.visitor).collect()
        };
        assert_eq!(outdated(&counts), [0_u64; 0]);
        counts.get_mut(&id(5, 1)).unwrap().tally.steps += 1;
        assert_eq!(
            outdated(&counts),
            [103, 104, 105],
            "and the days before, because their visits may continue"
        );
        counts.remove(&id(1, 2));
        assert_eq!(outdated(&counts), [103, 104, 105, 201, 202, 203]);
    }
}
