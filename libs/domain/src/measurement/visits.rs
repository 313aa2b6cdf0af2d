//! The visit rule: which page views and events of a visitor form one visit.
//!
//! The rule, to the millisecond:
//! - A page view or custom event starts a new visit if it comes more than [`Rules::gap`] after the visitor's last
//!   activity, or more than [`Rules::longest`] after the start of the visit. Neither midnight nor a campaign starts
//!   one.
//! - An engagement report is activity, and extends the visit to its own time. It never starts a visit: the report of
//!   a tab that is closed hours later belongs to none.
//! - The source of a visit is that of its first event; the entry and exit pages are those of its first and last *page
//!   view*.
//! - Events of the same millisecond are ordered by their ids.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::tracking::{ENGAGEMENT, PAGE_VIEW};

#[cfg(test)]
mod tests;

/// A day, the maximum duration of a visit.
const ENGAGEMENT_MS_MAX: u32 = 24 * 60 * 60 * 1_000;

/// When a visit ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Maximum time between two activities of a visit.
    pub gap: TimeDelta,
    /// Maximum time from a visit's first event to its last.
    pub longest: TimeDelta,
}

impl Default for Rules {
    fn default() -> Self {
        Self { gap: TimeDelta::minutes(30), longest: TimeDelta::hours(24) }
    }
}

/// An event of a visit. `Origin` is further data that a visit takes from its first event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step<Origin> {
    /// Time of the event, to the millisecond.
    pub at: DateTime<Utc>,
    /// Orders events of the same millisecond.
    pub id: Uuid,
    /// Daily id of the visitor.
    pub visitor: u64,
    pub kind: Kind,
    /// Host of the page.
    pub host: String,
    /// Path of the page.
    pub path: String,
    /// Milliseconds of engagement in the report.
    pub engagement_ms: u32,
    /// Source of the visit according to this event.
    pub origin: Origin,
}

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A page view.
    PageView,
    /// A custom event of the site.
    Custom,
    /// A report of engagement time and scroll depth, which no other metric counts.
    Engagement,
}

impl Kind {
    /// Returns the kind of the event with that name.
    pub fn of(name: &str) -> Self {
        match name {
            PAGE_VIEW => Self::PageView,
            ENGAGEMENT => Self::Engagement,
            _ => Self::Custom,
        }
    }
}

/// A visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit<Origin> {
    /// Daily id of the visitor at the start of the visit.
    pub visitor: u64,
    /// Time of the first event.
    pub start: DateTime<Utc>,
    /// Time of the last event or engagement report; the duration is the difference.
    pub ended: DateTime<Utc>,
    /// Number of page views.
    pub page_views: u32,
    /// Number of page views and custom events.
    pub events: u32,
    /// Host of the first page view; empty if there is none.
    pub entry_host: String,
    /// Path of the first page view; empty if there is none.
    pub entry_path: String,
    /// Path of the last page view; empty if there is none.
    pub exit_path: String,
    /// Milliseconds of engagement, at most one day.
    pub engagement_ms: u32,
    /// Checksum of its events, including engagement reports.
    pub tally: Tally,
    /// Origin of the first event.
    pub origin: Origin,
}

/// A checksum of events: their number and the sum of their times. It detects whether visits were computed from
/// exactly the stored events; equal checksums are taken for the same events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of events.
    pub steps: u32,
    /// Sum of their times in milliseconds modulo 2^32, which is unique for times of one day.
    pub times: u32,
}

impl Tally {
    /// Returns the checksum of one event.
    pub fn of(at: DateTime<Utc>) -> Self {
        Self { steps: 1, times: at.timestamp_millis().rem_euclid(1 << 32).try_into().unwrap_or_default() }
    }
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { steps: self.steps.saturating_add(other.steps), times: self.times.wrapping_add(other.times) }
    }
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), std::ops::Add::add)
    }
}

impl<Origin> Visit<Origin> {
    /// Returns whether the visit has one page view and no other event.
    pub fn is_bounce(&self) -> bool {
        self.page_views < 2 && self.events == self.page_views
    }
}

/// A visit in progress before the first given event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisitInProgress {
    /// Time of its first event.
    pub start: DateTime<Utc>,
    /// Time of its last activity.
    pub last: DateTime<Utc>,
}

/// Computes the visits of one visitor, in order of time. `steps` are all events of the visitor since `before`, in any
/// order. Events that belong to the visit in progress are in none of the visits.
pub fn visits_of<Origin: Clone>(
    steps: &mut [Step<Origin>],
    before: Option<VisitInProgress>,
    rules: Rules,
) -> Vec<Visit<Origin>> {
    let mut visits = Vec::new();
    take_all(steps, before, rules, &mut visits);
    visits
}

/// Returns whether a visit may start at `start`, after one with this start and last activity.
pub fn may_start(before: VisitInProgress, start: DateTime<Utc>, rules: Rules) -> bool {
    start > before.last && !before.takes(start, rules)
}

impl VisitInProgress {
    fn takes(self, at: DateTime<Utc>, rules: Rules) -> bool {
        at - self.last <= rules.gap && at - self.start <= rules.longest
    }
}

/// Extends the last visit of a visitor with later events, and returns the visits that they start. Returns `None` if
/// an event is not later than the visit's end: then the visits must be recomputed.
pub fn extend_visits<Origin: Clone>(
    last: Option<Visit<Origin>>,
    later: &mut [Step<Origin>],
    rules: Rules,
) -> Option<Vec<Visit<Origin>>> {
    let under_way = last.as_ref().map(|visit| VisitInProgress { start: visit.start, last: visit.ended });
    if under_way.is_some_and(|now| later.iter().any(|step| step.at <= now.last)) {
        return None;
    }
    let mut visits = Vec::from_iter(last);
    take_all(later, under_way, rules, &mut visits);
    Some(visits)
}

/// Applies the rule. `visits` ends with the visit in progress, if it is one of them.
fn take_all<Origin: Clone>(
    steps: &mut [Step<Origin>],
    mut under_way: Option<VisitInProgress>,
    rules: Rules,
    visits: &mut Vec<Visit<Origin>>,
) {
    steps.sort_unstable_by_key(|step| (step.at, step.id));
    for step in steps {
        match under_way.as_mut().filter(|now| now.takes(step.at, rules)) {
            Some(now) => {
                now.last = now.last.max(step.at);
                if let Some(visit) = visits.last_mut() {
                    visit.add(step);
                }
            }
            None if step.kind == Kind::Engagement => {}
            None => {
                under_way = Some(VisitInProgress { start: step.at, last: step.at });
                let mut visit = Visit::begin(step);
                visit.add(step);
                visits.push(visit);
            }
        }
    }
}

impl<Origin: Clone> Visit<Origin> {
    fn begin(first: &Step<Origin>) -> Self {
        Self {
            visitor: first.visitor,
            start: first.at,
            ended: first.at,
            page_views: 0,
            events: 0,
            entry_host: String::new(),
            entry_path: String::new(),
            exit_path: String::new(),
            engagement_ms: 0,
            tally: Tally::default(),
            origin: first.origin.clone(),
        }
    }

    fn add(&mut self, step: &Step<Origin>) {
        self.ended = step.at;
        self.tally = self.tally + Tally::of(step.at);
        self.events += u32::from(step.kind != Kind::Engagement);
        match step.kind {
            Kind::Engagement => {
                let sum = self.engagement_ms.saturating_add(step.engagement_ms);
                self.engagement_ms = sum.min(ENGAGEMENT_MS_MAX);
            }
            Kind::Custom => {}
            Kind::PageView => {
                if self.page_views == 0 {
                    self.entry_host.clone_from(&step.host);
                    self.entry_path.clone_from(&step.path);
                }
                self.page_views += 1;
                self.exit_path.clone_from(&step.path);
            }
        }
    }
}
