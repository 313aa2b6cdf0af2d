//! The short way, for nearly everybody: what came last is added to the stored visits, and nothing that came before is read
//! again. It may be gone only where the visits stay whole, which is looked at afterwards; all others go the long way.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use contract::events::Event;
use domain::visits::{Rules, Step, Tally, UnderWay, Visit, begins_anew, go_on};

use super::rows::{Origin, Origins, VisitRow, step_of};
use super::visitor_links::Id;
use crate::{Error, Warehouse};

/// Visitors worked on at a time: bounds the memory, and the length of a statement.
const AT_A_TIME: usize = 50_000;

/// What somebody sent just now.
type Sent = Vec<Step<Arc<Origin>>>;

/// The stored visits that began under an id, as far as the next event needs them.
#[derive(Default)]
struct StoredSessions {
    /// Of all but the last.
    earlier: Tally,
    last: Option<Visit<Arc<Origin>>>,
    spans: Vec<UnderWay>,
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

    /// Whether the rule could have made these visits: two that read the same at the same time may have written down parts
    /// of one, and be about to mend that.
    fn is_by(&mut self, rules: Rules) -> bool {
        self.spans.sort_unstable_by_key(|span| span.start);
        self.spans.windows(2).all(|two| begins_anew(two[0], two[1].start, rules))
    }
}

/// Visits that have gone on, and what must be stored of their visitor for them to be whole.
struct ExtendedSessions {
    visits: Vec<Visit<Arc<Origin>>>,
    version: u64,
    wanted: Tally,
}

impl Warehouse {
    /// Adds these events, stored just now, to their visitors' visits. Gives the ids of whom that can't be said: their
    /// visits are to be worked out anew.
    pub(super) async fn extend_sessions(&self, events: &[Event], rules: Rules) -> Result<HashSet<Id>, Error> {
        let mut origins = Origins::default();
        let mut sent: BTreeMap<Id, Sent> = BTreeMap::new();
        for event in events {
            let id = Id::at(event.site_id, event.visitor, event.received_at);
            sent.entry(id).or_default().push(step_of(event, &mut origins));
        }
        // Whoever came over midnight has visits under two ids.
        let came_over = events.iter().filter(|event| event.previous != 0);
        let mut anew: HashSet<Id> =
            came_over.map(|event| Id::at(event.site_id, event.visitor, event.received_at)).collect();
        sent.retain(|id, _| !anew.contains(id));
        while !sent.is_empty() {
            let rest = sent.keys().nth(AT_A_TIME).copied().map(|id| sent.split_off(&id));
            anew.extend(self.extend_batch(sent, &mut origins, rules).await?);
            sent = rest.unwrap_or_default();
        }
        Ok(anew)
    }

    async fn extend_batch(
        &self,
        sent: BTreeMap<Id, Sent>,
        origins: &mut Origins,
        rules: Rules,
    ) -> Result<HashSet<Id>, Error> {
        let ids: HashSet<Id> = sent.keys().copied().collect();
        let gone = self.read(sent, origins, rules).await?;
        let whole = self.write(&gone).await?;
        Ok(ids.into_iter().filter(|id| !whole.contains(id)).collect())
    }

    /// How stored visits go on with what was sent, where that can be said.
    async fn read(
        &self,
        sent: BTreeMap<Id, Sent>,
        origins: &mut Origins,
        rules: Rules,
    ) -> Result<HashMap<Id, ExtendedSessions>, Error> {
        let ids: HashSet<Id> = sent.keys().copied().collect();
        let mut kept: HashMap<Id, StoredSessions> = HashMap::new();
        self.look_at_visits(&ids, |row| kept.entry(row.id()).or_default().add(row, origins)).await?;
        let followed = self.next(&ids).await?;
        let on = sent.into_iter().filter(|(id, _)| !followed.contains_key(id)).filter_map(|(id, sent)| {
            let kept = kept.remove(&id).unwrap_or_default();
            extended(kept, sent, rules).map(|on| (id, on))
        });
        Ok(on.collect())
    }

    /// Writes down how visits went on, and gives those whose visits are then made of all there is.
    async fn write(&self, gone: &HashMap<Id, ExtendedSessions>) -> Result<HashSet<Id>, Error> {
        let rows = gone
            .iter()
            .flat_map(|(id, on)| on.visits.iter().map(|visit| VisitRow::of(id.site, visit, on.version)));
        self.insert_rows(&rows.collect::<Vec<_>>()).await?;
        // Others may have stored something of these visitors, or these events may have been in their visits already.
        let seen = self.count_seen(&gone.keys().copied().collect()).await?;
        let is_whole = |id: &Id, on: &ExtendedSessions| {
            seen.get(id).is_some_and(|seen| seen.tally == on.wanted && !seen.came_over)
        };
        Ok(gone.iter().filter(|(id, on)| is_whole(id, on)).map(|(id, _)| *id).collect())
    }
}

fn extended(mut kept: StoredSessions, mut sent: Sent, rules: Rules) -> Option<ExtendedSessions> {
    if !kept.is_by(rules) {
        return None;
    }
    let last = kept.last.as_ref().map(|visit| visit.tally).unwrap_or_default();
    let wanted = kept.earlier + last + sent.iter().map(|step| Tally::of(step.at)).sum();
    let version = kept.version + sent.len() as u64;
    let mut visits = go_on(kept.last, &mut sent, rules)?;
    // A report that belongs to no visit is in none: later ones may make it part of one.
    let is_whole = kept.earlier + visits.iter().map(|visit| visit.tally).sum() == wanted;
    // The last, where it didn't go on, is stored as it is.
    if visits.first().is_some_and(|visit| visit.tally == last) {
        visits.remove(0);
    }
    is_whole.then_some(ExtendedSessions { visits, version, wanted })
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};
    use sandbox::test::TestClickHouse;
    use uuid::Uuid;

    use super::*;

    /// Minutes after a midnight.
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
            cluster: String::new(),
        })
    }

    /// A collector that has stored an event and read the visits, and has written nothing yet.
    async fn begin(warehouse: &Warehouse, event: &Event) -> HashMap<Id, ExtendedSessions> {
        let batch = std::slice::from_ref(event);
        warehouse.insert_events(&event.id.to_string(), batch).await.unwrap();
        let mut origins = Origins::default();
        let id = Id::at(event.site_id, event.visitor, event.received_at);
        let sent = BTreeMap::from([(id, vec![step_of(event, &mut origins)])]);
        warehouse.read(sent, &mut origins, Rules::default()).await.unwrap()
    }

    async fn recompute(warehouse: &Warehouse, event: &Event) {
        warehouse.recompute_visits(std::slice::from_ref(event), Rules::default()).await.unwrap();
    }

    async fn views(warehouse: &Warehouse) -> Vec<u32> {
        let visits = warehouse.client.query("SELECT page_views FROM sessions FINAL ORDER BY start");
        visits.fetch_all().await.unwrap()
    }

    #[tokio::test]
    async fn a_visit_that_became_part_of_yesterdays_is_not_brought_back_by_who_had_read_it() {
        const YESTERDAYS: u64 = 1;
        let clickhouse = sandbox::test::clickhouse().await;
        let warehouse = warehouse(&clickhouse).await;
        let first = event(1, 2, 10, YESTERDAYS);
        warehouse.insert_events("1", std::slice::from_ref(&first)).await.unwrap();
        recompute(&warehouse, &first).await;
        let slow = event(2, 2, 35, 0);
        let gone = begin(&warehouse, &slow).await;
        let late = event(3, YESTERDAYS, -10, 0);
        warehouse.insert_events("3", std::slice::from_ref(&late)).await.unwrap();
        recompute(&warehouse, &late).await;
        assert_eq!(views(&warehouse).await, [3]);
        let whole = warehouse.write(&gone).await.unwrap();
        assert_eq!(whole.len(), 0);
        recompute(&warehouse, &slow).await;
        assert_eq!(views(&warehouse).await, [3]);
    }

    #[tokio::test]
    async fn parts_of_one_visit_that_two_wrote_down_at_once_are_not_gone_on_with() {
        let clickhouse = sandbox::test::clickhouse().await;
        let warehouse = warehouse(&clickhouse).await;
        let both = [event(1, 2, 660, 0), event(2, 2, 670, 0)];
        let gone = [begin(&warehouse, &both[0]).await, begin(&warehouse, &both[1]).await];
        for gone in &gone {
            assert_eq!(gone.len(), 1);
            assert_eq!(warehouse.write(gone).await.unwrap().len(), 0, "there is more by now");
        }
        assert_eq!(views(&warehouse).await, [1, 1]);
        let third = event(3, 2, 680, 0);
        assert_eq!(begin(&warehouse, &third).await.len(), 0);
        for event in [&both[0], &both[1], &third] {
            recompute(&warehouse, event).await;
            assert_eq!(views(&warehouse).await, [3]);
        }
        // One of the two wakes up and writes what it read long ago.
        assert_eq!(warehouse.write(&gone[1]).await.unwrap().len(), 0);
        recompute(&warehouse, &both[1]).await;
        assert_eq!(views(&warehouse).await, [3]);
    }
}
