//! The work itself: read what is stored, apply the rule, write what came of it, look again.

use std::collections::{BTreeSet, HashMap, HashSet};

use contract::events::Event;
use domain::visits::{Rules, Step, UnderWay, visits_of};

use super::chains::{Id, Links};
use super::rows::{Origin, StoredRow, VisitRow};
use crate::{Error, Warehouse};

/// Visitors worked on at a time: bounds the memory, and the length of a statement.
const AT_A_TIME: usize = 5_000;
/// How often others may come in between before the rest is left to them.
const LOOKS_MAX: u32 = 10;

/// What was read about some persons.
#[derive(Default)]
struct Known {
    links: Links,
    steps: HashMap<Id, Vec<Step<Origin>>>,
    /// The ids all of whose events were asked for.
    ids: HashSet<Id>,
    /// How many rows came.
    rows: u64,
}

impl Warehouse {
    /// Works out anew the visits that these events, stored already, belong to. Safe to do again, at the same time
    /// elsewhere, and in any order; an error leaves nothing behind that doing it again doesn't mend.
    ///
    /// # Errors
    /// ClickHouse is away, too slow, or refuses a statement.
    pub async fn recount_visits(&self, events: &[Event], rules: Rules) -> Result<(), Error> {
        let touched: BTreeSet<Id> =
            events.iter().map(|event| Id::at(event.site_id, event.visitor, event.received_at)).collect();
        let touched: Vec<Id> = touched.into_iter().collect();
        for some in touched.chunks(AT_A_TIME) {
            for _ in 0..LOOKS_MAX {
                if self.recount(some, rules).await? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Gives whether nothing came in between.
    async fn recount(&self, touched: &[Id], rules: Rules) -> Result<bool, Error> {
        let mut known = Known::default();
        let own: HashSet<Id> = touched.iter().copied().collect();
        self.learn(&own, &mut known).await?;
        // What these events can change are visits begun under their own ids, and those before and after.
        let beside = self.beside(&own, &known).await?;
        self.learn(&beside, &mut known).await?;
        let further = self.beside(&beside, &known).await?;
        self.learn(&further, &mut known).await?;

        let changed: HashSet<Id> = own.union(&beside).copied().collect();
        let earlier =
            known.ids.iter().filter_map(|id| known.links.before(*id)).filter(|id| !known.ids.contains(id));
        let wanted: HashSet<Id> = changed.iter().copied().chain(earlier).collect();
        let stored = self.stored_visits(&wanted).await?;
        self.insert_visits(&known, &changed, &stored, rules).await?;
        Ok(self.count_seen(&known.ids).await? == known.rows)
    }

    /// Reads the events of ids.
    async fn learn(&self, ids: &HashSet<Id>, known: &mut Known) -> Result<(), Error> {
        for row in self.seen(ids).await? {
            let id = row.id();
            known.links.add(id, row.previous);
            known.rows += 1;
            known.steps.entry(id).or_default().push(row.into_step());
        }
        known.ids.extend(ids);
        Ok(())
    }

    /// The ids before and after these that aren't known yet.
    async fn beside(&self, ids: &HashSet<Id>, known: &Known) -> Result<HashSet<Id>, Error> {
        let before = ids.iter().filter_map(|id| known.links.before(*id));
        let after = self.next(ids).await?;
        Ok(before.chain(after).filter(|id| !known.ids.contains(id)).collect())
    }

    async fn insert_visits(
        &self,
        known: &Known,
        changed: &HashSet<Id>,
        stored: &[StoredRow],
        rules: Rules,
    ) -> Result<(), Error> {
        let mut persons: HashMap<Id, Vec<Step<Origin>>> = HashMap::new();
        for (id, steps) in &known.steps {
            persons.entry(known.links.first(*id, &known.ids)).or_default().extend_from_slice(steps);
        }
        let visits: Vec<_> = persons
            .into_iter()
            .flat_map(|(first, mut steps)| {
                let before = known.links.before(first).and_then(|earlier| under_way(earlier, stored));
                let visits = visits_of(&mut steps, before, rules);
                visits.into_iter().map(move |visit| (Id::at(first.site, visit.visitor, visit.start), visit))
            })
            .filter(|(id, _)| changed.contains(id))
            .collect();
        let made: HashSet<_> = visits.iter().map(|(id, visit)| (*id, visit.start)).collect();
        let gone =
            stored.iter().filter(|row| changed.contains(&row.id()) && !made.contains(&(row.id(), row.start)));
        let gone = gone.map(|row| VisitRow::deleted(row, known.version(row.id())));
        let rows = visits.iter().map(|(id, visit)| VisitRow::of(id.site, visit, known.version(*id)));
        self.insert_rows(&rows.chain(gone).collect::<Vec<_>>()).await
    }
}

impl Known {
    /// How many events had a say in the visits begun under this id.
    fn version(&self, id: Id) -> u64 {
        let ids = [Some(id), self.links.before(id), self.links.after(id)];
        ids.into_iter().flatten().filter_map(|id| self.steps.get(&id)).map(|steps| steps.len() as u64).sum()
    }
}

/// The visit under way at the end of what was stored under this id.
fn under_way(id: Id, stored: &[StoredRow]) -> Option<UnderWay> {
    let last = stored.iter().filter(|row| row.id() == id).max_by_key(|row| row.start)?;
    Some(UnderWay { start: last.start, last: last.ended })
}
