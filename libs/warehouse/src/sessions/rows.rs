//! Rows of ClickHouse: events, stored visits and new visits.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use clickhouse::Row;
use contract::events::Event;
use domain::visits::{Kind, Step, Tally, Visit, VisitInProgress};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::visitor_links::DailyId;

/// The columns of an event that determine its visit.
#[derive(Row, Deserialize)]
pub(super) struct EventRow {
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    account_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    id: Uuid,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    received_at: DateTime<Utc>,
    visitor: u64,
    pub(super) previous: u64,
    name: String,
    host: String,
    path: String,
    engagement_ms: u32,
    referrer_host: String,
    source: String,
    channel: String,
    utm_source: String,
    utm_medium: String,
    utm_campaign: String,
    country: String,
    region: String,
    city: String,
    device: String,
    browser: String,
    os: String,
}

/// The attributes that a visit takes from its first event.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    account_id: Uuid,
    referrer_host: String,
    source: String,
    channel: String,
    utm_source: String,
    utm_medium: String,
    utm_campaign: String,
    country: String,
    region: String,
    city: String,
    device: String,
    browser: String,
    os: String,
}

/// Builds the origin of a row or event. `$text` is the method that turns its strings into owned ones.
macro_rules! origin_of {
    ($row:expr, $text:ident) => {
        Origin {
            account_id: $row.account_id,
            referrer_host: $row.referrer_host.$text(),
            source: $row.source.$text(),
            channel: $row.channel.$text(),
            utm_source: $row.utm_source.$text(),
            utm_medium: $row.utm_medium.$text(),
            utm_campaign: $row.utm_campaign.$text(),
            country: $row.country.$text(),
            region: $row.region.$text(),
            city: $row.city.$text(),
            device: $row.device.$text(),
            browser: $row.browser.$text(),
            os: $row.os.$text(),
        }
    };
}

/// A stored visit, reduced to its time.
#[derive(Row, Deserialize)]
pub(super) struct StoredRow {
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
    visitor: u64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    pub(super) start: DateTime<Utc>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    pub(super) ended: DateTime<Utc>,
}

/// A visit that has any rows, including a deleted one.
#[derive(Row, Deserialize)]
pub(super) struct RecordedVisit {
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    account_id: Uuid,
    visitor: u64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    pub(super) start: DateTime<Utc>,
    /// The highest version of its rows.
    pub(super) version: u64,
}

/// A row of `sessions`.
#[derive(Default, Row, Serialize, Deserialize)]
pub(super) struct VisitRow<'a> {
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    account_id: Uuid,
    visitor: u64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    start: DateTime<Utc>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    ended: DateTime<Utc>,
    page_views: u32,
    events: u32,
    bounce: u8,
    entry_host: &'a str,
    entry_path: &'a str,
    exit_path: &'a str,
    referrer_host: &'a str,
    source: &'a str,
    channel: &'a str,
    utm_source: &'a str,
    utm_medium: &'a str,
    utm_campaign: &'a str,
    country: &'a str,
    region: &'a str,
    city: &'a str,
    device: &'a str,
    browser: &'a str,
    os: &'a str,
    engagement_ms: u32,
    steps: u32,
    times: u32,
    pub(super) version: u64,
    deleted: u8,
}

impl<'a> VisitRow<'a> {
    pub(super) fn of(site_id: Uuid, visit: &'a Visit<Arc<Origin>>, version: u64) -> Self {
        let origin = &visit.origin;
        Self {
            site_id,
            account_id: origin.account_id,
            visitor: visit.visitor,
            start: visit.start,
            ended: visit.ended,
            page_views: visit.page_views,
            events: visit.events,
            bounce: visit.is_bounce().into(),
            entry_host: &visit.entry_host,
            entry_path: &visit.entry_path,
            exit_path: &visit.exit_path,
            referrer_host: &origin.referrer_host,
            source: &origin.source,
            channel: &origin.channel,
            utm_source: &origin.utm_source,
            utm_medium: &origin.utm_medium,
            utm_campaign: &origin.utm_campaign,
            country: &origin.country,
            region: &origin.region,
            city: &origin.city,
            device: &origin.device,
            browser: &origin.browser,
            os: &origin.os,
            engagement_ms: visit.engagement_ms,
            steps: visit.tally.steps,
            times: visit.tally.times,
            version,
            deleted: 0,
        }
    }

    /// The row that deletes a visit.
    pub(super) fn deleted(visit: &RecordedVisit, version: u64) -> Self {
        Self {
            site_id: visit.site_id,
            account_id: visit.account_id,
            visitor: visit.visitor,
            start: visit.start,
            ended: visit.start,
            version,
            deleted: 1,
            ..Self::default()
        }
    }

    pub(super) fn id(&self) -> DailyId {
        DailyId::at(self.site_id, self.visitor, self.start)
    }

    pub(super) fn tally(&self) -> Tally {
        Tally { steps: self.steps, times: self.times }
    }

    pub(super) fn span(&self) -> VisitInProgress {
        VisitInProgress { start: self.start, last: self.ended }
    }

    pub(super) fn into_visit(self, origins: &mut Origins) -> Visit<Arc<Origin>> {
        let tally = self.tally();
        Visit {
            visitor: self.visitor,
            start: self.start,
            ended: self.ended,
            page_views: self.page_views,
            events: self.events,
            entry_host: self.entry_host.to_owned(),
            entry_path: self.entry_path.to_owned(),
            exit_path: self.exit_path.to_owned(),
            engagement_ms: self.engagement_ms,
            tally,
            origin: origins.share(origin_of!(self, to_owned)),
        }
    }
}

impl RecordedVisit {
    pub(super) fn id(&self) -> DailyId {
        DailyId::at(self.site_id, self.visitor, self.start)
    }
}

impl StoredRow {
    pub(super) fn id(&self) -> DailyId {
        DailyId::at(self.site_id, self.visitor, self.start)
    }
}

impl EventRow {
    pub(super) fn id(&self) -> DailyId {
        DailyId::at(self.site_id, self.visitor, self.received_at)
    }

    pub(super) fn into_step(self, origins: &mut Origins) -> Step<Arc<Origin>> {
        Step {
            at: self.received_at,
            id: self.id,
            visitor: self.visitor,
            kind: Kind::of(&self.name),
            host: self.host,
            path: self.path,
            engagement_ms: self.engagement_ms,
            origin: origins.share(origin_of!(self, into)),
        }
    }
}

/// Converts a new event into a step of a visit.
pub(super) fn step_of(event: &Event, origins: &mut Origins) -> Step<Arc<Origin>> {
    Step {
        at: event.received_at,
        id: event.id,
        visitor: event.visitor,
        kind: Kind::of(&event.name),
        host: event.host.clone(),
        path: event.path.clone(),
        engagement_ms: event.engagement_ms,
        origin: origins.share(origin_of!(event, clone)),
    }
}

/// Interns origins, because many visits share the same.
#[derive(Default)]
pub(super) struct Origins(HashSet<Arc<Origin>>);

impl Origins {
    fn share(&mut self, origin: Origin) -> Arc<Origin> {
        if let Some(existing) = self.0.get(&origin) {
            return Arc::clone(existing);
        }
        let origin = Arc::new(origin);
        self.0.insert(Arc::clone(&origin));
        origin
    }
}
