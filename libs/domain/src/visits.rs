//! What a visit is: the page views and events of one visitor, until they fall silent.
//!
//! The rule, to the millisecond:
//! - A page view or custom event more than [`Rules::gap`] after the visitor's last sign of life, or more than
//!   [`Rules::longest`] after the visit began, begins a new visit. Neither midnight nor a campaign does.
//! - An engagement report is a sign of life, and lengthens the visit to the moment it was made. It never begins
//!   one: a tab that is closed hours later is no visit.
//! - Where the visit came from is what its first event says; the first and the last *page view* are where it was
//!   entered and left.
//! - Events of the same millisecond follow one another in the order of their ids.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::tracking::{ENGAGEMENT, PAGE_VIEW};

#[cfg(test)]
mod tests;

/// A day: nobody attends to a visit for longer than it can last.
const ENGAGEMENT_MS_MAX: u32 = 24 * 60 * 60 * 1_000;

/// When a visit ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The longest silence within a visit.
    pub gap: TimeDelta,
    /// The longest time from a visit's first event to its last.
    pub longest: TimeDelta,
}

impl Default for Rules {
    fn default() -> Self {
        Self { gap: TimeDelta::minutes(30), longest: TimeDelta::hours(24) }
    }
}

/// An event as far as visits are made of it. `Origin` is whatever else is known at a visit's first event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step<Origin> {
    /// When it happened, to the millisecond.
    pub at: DateTime<Utc>,
    /// Settles the order within a millisecond.
    pub id: Uuid,
    /// The visitor's id of the day.
    pub visitor: u64,
    /// What it is.
    pub kind: Kind,
    /// Host of the page.
    pub host: String,
    /// Path of the page.
    pub path: String,
    /// Milliseconds of attention that it reports.
    pub engagement_ms: u32,
    /// Where it says the visitor came from, and with what.
    pub origin: Origin,
}

/// What an event is to a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A page was shown.
    PageView,
    /// The site's own event.
    Custom,
    /// A report of attention and scroll depth, counted in no other figure.
    Engagement,
}

impl Kind {
    /// The kind of the event with that name.
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
    /// The visitor's id of the day on which it began.
    pub visitor: u64,
    /// Its first event.
    pub start: DateTime<Utc>,
    /// Its last event or engagement report; the visit's duration is the time between the two.
    pub ended: DateTime<Utc>,
    /// Page views.
    pub page_views: u32,
    /// Page views and custom events.
    pub events: u32,
    /// Host of the first page view; empty without any.
    pub entry_host: String,
    /// Path of the first page view; empty without any.
    pub entry_path: String,
    /// Path of the last page view; empty without any.
    pub exit_path: String,
    /// Milliseconds of attention; a day at most.
    pub engagement_ms: u32,
    /// What it is made of, engagement reports included.
    pub tally: Tally,
    /// The first event's.
    pub origin: Origin,
}

/// How many steps, and the sum of their times: what tells whether visits are made of just the events that are stored.
/// Steps that are as many and as long ago count as the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub steps: u32,
    /// Their times in milliseconds, added up modulo 2^32: times of one day differ in it.
    pub times: u32,
}

impl Tally {
    /// Of one step.
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
    /// Whether the visitor saw one page, did nothing there, and left.
    pub fn is_bounce(&self) -> bool {
        self.page_views < 2 && self.events == self.page_views
    }
}

/// The visit that was under way before the first step, if one was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnderWay {
    /// Its first event.
    pub start: DateTime<Utc>,
    /// The last sign of life.
    pub last: DateTime<Utc>,
}

/// The visits of one person, in order of time. `steps` are all of the person's, from `before` on, in any order.
/// What belongs to the visit that was under way before is in none of them.
pub fn visits_of<Origin: Clone>(
    steps: &mut [Step<Origin>],
    before: Option<UnderWay>,
    rules: Rules,
) -> Vec<Visit<Origin>> {
    let mut visits = Vec::new();
    take_all(steps, before, rules, &mut visits);
    visits
}

/// Whether the rule lets a visit begin then, after one that began and ended so.
pub fn begins_anew(before: UnderWay, start: DateTime<Utc>, rules: Rules) -> bool {
    start > before.last && !before.takes(start, rules)
}

impl UnderWay {
    fn takes(self, at: DateTime<Utc>, rules: Rules) -> bool {
        at - self.last <= rules.gap && at - self.start <= rules.longest
    }
}

/// How the last of a person's visits goes on with what came after it, and what begins then; where some of it came no
/// later than its end, none: the visits are to be made anew.
pub fn go_on<Origin: Clone>(
    last: Option<Visit<Origin>>,
    later: &mut [Step<Origin>],
    rules: Rules,
) -> Option<Vec<Visit<Origin>>> {
    let under_way = last.as_ref().map(|visit| UnderWay { start: visit.start, last: visit.ended });
    if under_way.is_some_and(|now| later.iter().any(|step| step.at <= now.last)) {
        return None;
    }
    let mut visits = Vec::from_iter(last);
    take_all(later, under_way, rules, &mut visits);
    Some(visits)
}

/// The rule. `visits` ends with the one under way, if that is one of them.
fn take_all<Origin: Clone>(
    steps: &mut [Step<Origin>],
    mut under_way: Option<UnderWay>,
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
                under_way = Some(UnderWay { start: step.at, last: step.at });
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
