//! The fast path for most visitors: adds new events to the stored visits without reading earlier events. It applies only
//! if the visits then contain all events of the visitor, which is checked afterwards; all others are recomputed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use contract::events::Event;
use domain::visits::{Rules, Step, Tally, Visit, VisitInProgress, extend_visits, may_start};

use super::rows::{Origin, Origins, VisitRow, step_of};
use super::visitor_links::DailyId;
use crate::client::Warehouse;
use crate::error::Error;

/// Visitors per batch. Bounds the memory and the size of statements.
const BATCH_SIZE: usize = 50_000;

/// The new events of one visitor.
type NewSteps = Vec<Step<Arc<Origin>>>;

/// The stored visits of an id, reduced to the data that new events need.
#[derive(Default)]
struct StoredSessions {
    /// The tally of all visits but the last.
    earlier: Tally,
    last: Option<Visit<Arc<Origin>>>,
    spans: Vec<VisitInProgress>,
    version: u64,
}

impl StoredSessions {
    fn add(&mut self, row: VisitRow<'_>, origins: &mut Origins) {
        self.version = self.version.max(row.version);
        let span = row.span();
        self.spans.push(span);
        if self.last.as_ref().is_some_and(|last| span.start <= last.start) {
            self.earlier = self.earlier + row.tally();
        } else {
            let last = self.last.replace(row.into_visit(origins));
            self.earlier = self.earlier + last.map(|visit| visit.tally).unwrap_or_default();
        }
    }

    /// Whether the rules can produce these visits. Concurrent collectors may have written parts of one visit and be about
    /// to repair that.
    fn follow(&mut self, rules: Rules) -> bool {
        self.spans.sort_unstable_by_key(|span| span.start);
        self.spans.windows(2).all(|two| may_start(two[0], two[1].start, rules))
    }
}

/// Extended visits, and the tally of stored events with which they are complete.
struct ExtendedSessions {
    visits: Vec<Visit<Arc<Origin>>>,
    version: u64,
    expected: Tally,
}

impl Warehouse {
    /// Adds these new, stored events to their visitors' visits. Returns the ids to recompute instead.
    pub(super) async fn extend_sessions(
        &self,
        events: &[Event],
        rules: Rules,
    ) -> Result<HashSet<DailyId>, Error> {
        let mut origins = Origins::default();
        let mut new: BTreeMap<DailyId, NewSteps> = BTreeMap::new();
        for event in events {
            let id = DailyId::at(event.site_id, event.visitor, event.received_at);
            new.entry(id).or_default().push(step_of(event, &mut origins));
        }
        // A visitor around midnight has visits under two ids.
        let linked = events.iter().filter(|event| event.previous != 0);
        let mut outdated: HashSet<DailyId> =
            linked.map(|event| DailyId::at(event.site_id, event.visitor, event.received_at)).collect();
        new.retain(|id, _| !outdated.contains(id));
        while !new.is_empty() {
            let rest = new.keys().nth(BATCH_SIZE).copied().map(|id| new.split_off(&id));
            outdated.extend(self.extend_batch(new, &mut origins, rules).await?);
            new = rest.unwrap_or_default();
        }
        Ok(outdated)
    }

    async fn extend_batch(
        &self,
        new: BTreeMap<DailyId, NewSteps>,
        origins: &mut Origins,
        rules: Rules,
    ) -> Result<HashSet<DailyId>, Error> {
        let ids: HashSet<DailyId> = new.keys().copied().collect();
        let extended = self.extend_stored(new, origins, rules).await?;
        let complete = self.write(&extended).await?;
        Ok(ids.into_iter().filter(|id| !complete.contains(id)).collect())
    }

    /// Extends the stored visits in memory, where the fast path applies.
    async fn extend_stored(
        &self,
        new: BTreeMap<DailyId, NewSteps>,
        origins: &mut Origins,
        rules: Rules,
    ) -> Result<HashMap<DailyId, ExtendedSessions>, Error> {
        let ids: HashSet<DailyId> = new.keys().copied().collect();
        let mut stored: HashMap<DailyId, StoredSessions> = HashMap::new();
        self.for_each_visit(&ids, |row| stored.entry(row.id()).or_default().add(row, origins)).await?;
        let continued = self.next_day_ids(&ids).await?;
        let extended =
            new.into_iter().filter(|(id, _)| !continued.contains_key(id)).filter_map(|(id, new)| {
                let stored = stored.remove(&id).unwrap_or_default();
                extend(stored, new, rules).map(|extended| (id, extended))
            });
        Ok(extended.collect())
    }

    /// Writes extended visits. Returns the ids for which the visits then contain all stored events.
    async fn write(&self, extended: &HashMap<DailyId, ExtendedSessions>) -> Result<HashSet<DailyId>, Error> {
        let rows = extended
            .iter()
            .flat_map(|(id, one)| one.visits.iter().map(|visit| VisitRow::of(id.site, visit, one.version)));
        self.insert_rows(&rows.collect::<Vec<_>>()).await?;
        // Another collector may have stored events of these visitors, or the visits may have contained these events before.
        let counts = self.count_events(&extended.keys().copied().collect()).await?;
        let is_complete = |id: &DailyId, one: &ExtendedSessions| {
            counts.get(id).is_some_and(|count| count.tally == one.expected && !count.has_previous)
        };
        Ok(extended.iter().filter(|(id, one)| is_complete(id, one)).map(|(id, _)| *id).collect())
    }
}

fn extend(mut stored: StoredSessions, mut new: NewSteps, rules: Rules) -> Option<ExtendedSessions> {
    if !stored.follow(rules) {
        return None;
    }
    let last = stored.last.as_ref().map(|visit| visit.tally).unwrap_or_default();
    let expected = stored.earlier + last + new.iter().map(|step| Tally::of(step.at)).sum();
    let version = stored.version + new.len() as u64;
    let mut visits = extend_visits(stored.last, &mut new, rules)?;
    // A report of engagement without a visit is in none; later events may make it part of one.
    let is_complete = stored.earlier + visits.iter().map(|visit| visit.tally).sum() == expected;
    // If the last visit was not continued, its row is unchanged.
    if visits.first().is_some_and(|visit| visit.tally == last) {
        visits.remove(0);
    }
    is_complete.then_some(ExtendedSessions { visits, version, expected })
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};
    use sandbox::test::TestClickHouse;
    use uuid::Uuid;

    use super::*;

    /// A page view at that many minutes after a fixed midnight.
    fn event(number: u128, visitor: u64, minutes: i64, previous: u64) -> Event {
        Event {
            id: Uuid::from_u128(number),
            site_id: Uuid::from_u128(7),
            received_at: DateTime::from_timestamp(1_794_960_000, 0).unwrap() + TimeDelta::minutes(minutes),
            name: "page_view".to_owned(),
            visitor,
            previous,
            ..Event::default()
        }
    }

    async fn warehouse(clickhouse: &TestClickHouse) -> Warehouse {
        crate::connect(&crate::Config {
            url: clickhouse.url.clone(),
            database: clickhouse.database.clone(),
            user: clickhouse.user.clone(),
            password: clickhouse.password.clone(),
            ca_file: std::path::PathBuf::new(),
            cluster: String::new(),
        })
        .unwrap()
    }

    /// Stores an event and extends its visitor's visits in memory, as a collector does that has not written them yet.
    async fn extend_in_memory(warehouse: &Warehouse, event: &Event) -> HashMap<DailyId, ExtendedSessions> {
        let batch = std::slice::from_ref(event);
        warehouse.insert_events(&event.id.to_string(), batch).await.unwrap();
        let mut origins = Origins::default();
        let id = DailyId::at(event.site_id, event.visitor, event.received_at);
        let new = BTreeMap::from([(id, vec![step_of(event, &mut origins)])]);
        warehouse.extend_stored(new, &mut origins, Rules::default()).await.unwrap()
    }

    async fn recompute(warehouse: &Warehouse, event: &Event) {
        warehouse.recompute_visits(std::slice::from_ref(event), Rules::default()).await.unwrap();
    }

    async fn views(warehouse: &Warehouse) -> Vec<u32> {
        let visits = warehouse.client.query("SELECT page_views FROM sessions FINAL ORDER BY start");
        visits.fetch_all().await.unwrap()
    }

    #[tokio::test]
    async fn a_slow_collector_does_not_restore_a_visit_that_was_merged_into_yesterdays() {
        const YESTERDAYS: u64 = 1;
        let clickhouse = sandbox::test::clickhouse().await;
        let warehouse = warehouse(&clickhouse).await;
        let first = event(1, 2, 10, YESTERDAYS);
        warehouse.insert_events("1", std::slice::from_ref(&first)).await.unwrap();
        recompute(&warehouse, &first).await;
        let slow = event(2, 2, 35, 0);
        let extended = extend_in_memory(&warehouse, &slow).await;
        let late = event(3, YESTERDAYS, -10, 0);
        warehouse.insert_events("3", std::slice::from_ref(&late)).await.unwrap();
        recompute(&warehouse, &late).await;
        assert_eq!(views(&warehouse).await, [3]);
        let complete = warehouse.write(&extended).await.unwrap();
        assert_eq!(complete.len(), 0);
        recompute(&warehouse, &slow).await;
        assert_eq!(views(&warehouse).await, [3]);
    }

    #[tokio::test]
    async fn parts_of_a_visit_written_by_concurrent_collectors_are_not_extended() {
        let clickhouse = sandbox::test::clickhouse().await;
        let warehouse = warehouse(&clickhouse).await;
        let both = [event(1, 2, 660, 0), event(2, 2, 670, 0)];
        let extended =
            [extend_in_memory(&warehouse, &both[0]).await, extend_in_memory(&warehouse, &both[1]).await];
        for extended in &extended {
            assert_eq!(extended.len(), 1);
            assert_eq!(warehouse.write(extended).await.unwrap().len(), 0, "more events are stored by now");
        }
        assert_eq!(views(&warehouse).await, [1, 1]);
        let third = event(3, 2, 680, 0);
        assert_eq!(extend_in_memory(&warehouse, &third).await.len(), 0);
        for event in [&both[0], &both[1], &third] {
            recompute(&warehouse, event).await;
            assert_eq!(views(&warehouse).await, [3]);
        }
        // One of the two collectors writes its outdated result again.
        assert_eq!(warehouse.write(&extended[1]).await.unwrap().len(), 0);
        recompute(&warehouse, &both[1]).await;
        assert_eq!(views(&warehouse).await, [3]);
    }
}
