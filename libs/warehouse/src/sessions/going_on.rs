//! The short way, for nearly everybody: what came last is added to the stored visits, and nothing that came before is read
//! again. It may be gone only where the visits stay whole, which is looked at afterwards; all others go the long way.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use contract::events::Event;
use domain::visits::{Rules, Step, Tally, Visit, go_on};

use super::chains::Id;
use super::rows::{Origin, Origins, VisitRow, step_of};
use crate::{Error, Warehouse};

/// Visitors worked on at a time: bounds the memory, and the length of a statement.
const AT_A_TIME: usize = 50_000;

/// What somebody sent just now.
type Sent = Vec<Step<Arc<Origin>>>;

/// The stored visits that began under an id, as far as the next event needs them.
#[derive(Default)]
struct Kept {
    /// Of all but the last.
    earlier: Tally,
    last: Option<Visit<Arc<Origin>>>,
    version: u64,
}

impl Kept {
    fn add(&mut self, row: VisitRow<'_>, origins: &mut Origins) {
        self.version = self.version.max(row.version);
        if self.last.as_ref().is_some_and(|last| !row.begins_after(last)) {
            self.earlier = self.earlier + row.tally();
        } else {
            let last = self.last.replace(row.into_visit(origins));
            self.earlier = self.earlier + last.map(|visit| visit.tally).unwrap_or_default();
        }
    }
}

/// Visits that have gone on, and what must be stored of their visitor for them to be whole.
struct Gone {
    visits: Vec<Visit<Arc<Origin>>>,
    version: u64,
    wanted: Tally,
}

impl Warehouse {
    /// Adds these events, stored just now, to their visitors' visits. Gives the ids of whom that can't be said: their
    /// visits are to be worked out anew.
    pub(super) async fn go_on(&self, events: &[Event], rules: Rules) -> Result<HashSet<Id>, Error> {
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
            anew.extend(self.go_on_some(sent, &mut origins, rules).await?);
            sent = rest.unwrap_or_default();
        }
        Ok(anew)
    }

    async fn go_on_some(
        &self,
        sent: BTreeMap<Id, Sent>,
        origins: &mut Origins,
        rules: Rules,
    ) -> Result<HashSet<Id>, Error> {
        let ids: HashSet<Id> = sent.keys().copied().collect();
        let mut kept: HashMap<Id, Kept> = HashMap::new();
        self.look_at_visits(&ids, |row| kept.entry(row.id()).or_default().add(row, origins)).await?;
        let followed = self.followed(&ids).await?;
        let mut gone: HashMap<Id, Gone> = HashMap::new();
        for (id, sent) in sent {
            let kept = kept.remove(&id).unwrap_or_default();
            if !followed.contains(&id)
                && let Some(on) = gone_on(kept, sent, rules)
            {
                gone.insert(id, on);
            }
        }
        let rows = gone
            .iter()
            .flat_map(|(id, on)| on.visits.iter().map(|visit| VisitRow::of(id.site, visit, on.version)));
        self.insert_rows(&rows.collect::<Vec<_>>()).await?;
        // Others may have stored something of these visitors, or these events may have been in their visits already.
        let written: HashSet<Id> = gone.keys().copied().collect();
        let seen = self.count_seen(&written).await?;
        let is_whole = |id: &Id| gone.get(id).is_some_and(|on| seen.get(id) == Some(&on.wanted));
        Ok(ids.into_iter().filter(|id| !is_whole(id)).collect())
    }
}

fn gone_on(kept: Kept, mut sent: Sent, rules: Rules) -> Option<Gone> {
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
    is_whole.then_some(Gone { visits, version, wanted })
}
