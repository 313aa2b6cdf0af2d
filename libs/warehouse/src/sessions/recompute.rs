//! The work itself: read what is stored, apply the rule, write what came of it, look again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use contract::events::Event;
use domain::visits::{Rules, Step, Tally, UnderWay, visits_of};

use super::queries::Seen;
use super::rows::{Origin, Origins, StoredRow, Trace, VisitRow};
use super::visitor_links::{Id, VisitorLinks};
use crate::{Error, Warehouse};

/// Visitors worked on at a time: bounds the memory, and the length of a statement. Where that is too many for the
/// server, they are halved.
const AT_A_TIME: usize = 10_000;
/// How often others may come in between before the rest is left to them.
const LOOKS_MAX: u32 = 10;

/// What was read about some persons.
#[derive(Default)]
struct Known {
    links: VisitorLinks,
    steps: HashMap<Id, Vec<Step<Arc<Origin>>>>,
    /// What was read of each id.
    seen: HashMap<Id, Tally>,
    /// The highest versions that are stored.
    versions: HashMap<Id, u64>,
    origins: Origins,
    /// The ids all of whose events were asked for.
    ids: HashSet<Id>,
}

impl Warehouse {
    /// Works out anew the visits that these events, stored already, belong to. Safe to do again, at the same time
    /// elsewhere, and in any order; an error leaves nothing behind that doing it again doesn't mend.
    ///
    /// # Errors
    /// ClickHouse is away, too slow, or refuses a statement.
    pub async fn recompute_visits(&self, events: &[Event], rules: Rules) -> Result<(), Error> {
        let touched = match self.extend_sessions(events, rules).await {
            Err(error) if error.is_too_much_for_the_server() => {
                events.iter().map(|event| Id::at(event.site_id, event.visitor, event.received_at)).collect()
            }
            anew => anew?,
        };
        // In the order in which they lie.
        let mut touched: Vec<Id> = touched.into_iter().collect();
        touched.sort_unstable();
        let mut waiting: Vec<Vec<Id>> = touched.chunks(AT_A_TIME).map(<[Id]>::to_vec).collect();
        while let Some(some) = waiting.pop() {
            match self.recompute_until_settled(&some, rules).await {
                Err(error) if error.is_too_much_for_the_server() && some.len() > 1 => {
                    let (one, other) = some.split_at(some.len() / 2);
                    waiting.extend([one.to_vec(), other.to_vec()]);
                }
                settled => settled?,
            }
        }
        Ok(())
    }

    async fn recompute_until_settled(&self, touched: &[Id], rules: Rules) -> Result<(), Error> {
        let mut unsettled = touched.to_vec();
        for _ in 0..LOOKS_MAX {
            unsettled = self.recompute(&unsettled, rules).await?;
            if unsettled.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Gives those of whom others have stored something in between.
    async fn recompute(&self, touched: &[Id], rules: Rules) -> Result<Vec<Id>, Error> {
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
        let stored = self.stored_visits(&earlier.collect()).await?;
        let traces = self.list_traces(&changed).await?;
        for trace in &traces {
            let version = known.versions.entry(trace.id()).or_default();
            *version = trace.version.max(*version);
        }
        self.insert_visits(&mut known, &changed, &stored, &traces, rules).await?;
        let seen = self.count_seen(&known.ids).await?;
        Ok(touched.iter().copied().filter(|id| known.is_outdated(*id, &seen)).collect())
    }

    /// Reads the events of ids.
    async fn learn(&self, ids: &HashSet<Id>, known: &mut Known) -> Result<(), Error> {
        let Known { links, steps, seen, origins, .. } = &mut *known;
        self.look_at(ids, |row| {
            let id = row.id();
            links.add(id, row.previous);
            let step = row.into_step(origins);
            let seen = seen.entry(id).or_default();
            *seen = *seen + Tally::of(step.at);
            steps.entry(id).or_default().push(step);
        })
        .await?;
        known.ids.extend(ids);
        Ok(())
    }

    /// The ids before and after these that aren't known yet.
    async fn beside(&self, ids: &HashSet<Id>, known: &Known) -> Result<HashSet<Id>, Error> {
        let before = ids.iter().filter_map(|id| known.links.before(*id));
        let after = self.next(ids).await?.into_values();
        Ok(before.chain(after).filter(|id| !known.ids.contains(id)).collect())
    }

    async fn insert_visits(
        &self,
        known: &mut Known,
        changed: &HashSet<Id>,
        stored: &[StoredRow],
        traces: &[Trace],
        rules: Rules,
    ) -> Result<(), Error> {
        let mut persons: HashMap<Id, Vec<Step<Arc<Origin>>>> = HashMap::new();
        for (id, mut steps) in std::mem::take(&mut known.steps) {
            persons.entry(known.links.first(id, &known.ids)).or_default().append(&mut steps);
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
        // Also what is deleted already: somebody may just be writing down what they read before it was.
        let gone = traces.iter().filter(|trace| !made.contains(&(trace.id(), trace.start)));
        let gone = gone.map(|trace| VisitRow::deleted(trace, known.version(trace.id())));
        let rows = visits.iter().map(|(id, visit)| VisitRow::of(id.site, visit, known.version(*id)));
        self.insert_rows(&rows.chain(gone).collect::<Vec<_>>()).await
    }
}

impl Known {
    /// Whether anybody whose events had a say in this id's visits, or in those begun the day before or after, has
    /// other events by now.
    fn is_outdated(&self, id: Id, now: &HashMap<Id, Seen>) -> bool {
        let (before, after) = (self.links.before(id), self.links.after(id));
        let further =
            [before.and_then(|id| self.links.before(id)), after.and_then(|id| self.links.after(id))];
        let mut chain = [Some(id), before, after].into_iter().chain(further).flatten();
        let was = |id: &Id| self.seen.get(id).copied().unwrap_or_default();
        let is = |id: &Id| now.get(id).map(|seen| seen.tally).unwrap_or_default();
        chain.any(|id| self.ids.contains(&id) && is(&id) != was(&id))
    }

    /// How many events had a say in the visits begun under this id; and no less than is stored: links between days are
    /// forgotten, and then fewer seem to have had one.
    fn version(&self, id: Id) -> u64 {
        let ids = [Some(id), self.links.before(id), self.links.after(id)];
        let counted =
            ids.into_iter().flatten().filter_map(|id| self.seen.get(&id)).map(|seen| u64::from(seen.steps));
        counted.sum::<u64>().max(self.versions.get(&id).copied().unwrap_or_default())
    }
}

/// The visit under way at the end of what was stored under this id.
fn under_way(id: Id, stored: &[StoredRow]) -> Option<UnderWay> {
    let last = stored.iter().filter(|row| row.id() == id).max_by_key(|row| row.start)?;
    Some(UnderWay { start: last.start, last: last.ended })
}

#[cfg(test)]
mod tests {
    use chrono::{Days, NaiveDate};
    use uuid::Uuid;

    use super::*;

    fn id(day: u64, person: u64) -> Id {
        Id { day: NaiveDate::default() + Days::new(day), site: Uuid::nil(), visitor: person * 100 + day }
    }

    #[test]
    fn only_those_are_worked_out_again_whose_own_events_became_more() {
        let mut known = Known::default();
        for person in [1, 2] {
            for day in 1..=5 {
                known.ids.insert(id(day, person));
                known.seen.insert(id(day, person), Tally { steps: 2, times: 7 });
                known.links.add(id(day, person), id(day - 1, person).visitor);
            }
        }
        let seen = |tally: &Tally| Seen { tally: *tally, came_over: false };
        let mut counts: HashMap<Id, Seen> = known.seen.iter().map(|(id, tally)| (*id, seen(tally))).collect();
        let outdated = |counts: &HashMap<Id, Seen>| -> Vec<u64> {
            let both = [1, 2].into_iter().flat_map(|person| (1..=5).map(move |day| id(day, person)));
            both.filter(|id| known.is_outdated(*id, counts)).map(|id| id.visitor).collect()
        };
        assert_eq!(outdated(&counts), [0_u64; 0]);
        counts.get_mut(&id(5, 1)).unwrap().tally.steps += 1;
        assert_eq!(outdated(&counts), [103, 104, 105], "and those whose visits may go on in theirs");
        counts.remove(&id(1, 2));
        assert_eq!(outdated(&counts), [103, 104, 105, 201, 202, 203]);
    }
}
