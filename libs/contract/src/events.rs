//! Analytics events that passed the collector's pipeline, as they are stored in its segment files until they are in
//! ClickHouse.
//!
//! An event is written once, as JSON, into a segment file, and may be read by a newer version of the collector. So
//! the shape only grows: a new field gets `#[serde(default)]`, and a name is never reused. Empty values are omitted,
//! which keeps a line near 300 bytes and readable in an emergency.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A visitor's event on a site, enriched. It contains no personal data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Id of the event, for detecting duplicates.
    pub id: Uuid,
    /// Owner of the site.
    pub account_id: Uuid,
    pub site_id: Uuid,
    /// When the collector received the event, to the millisecond.
    #[serde(with = "chrono::serde::ts_milliseconds")]
    pub received_at: DateTime<Utc>,
    /// `page_view` or the name of a custom event.
    pub name: String,
    pub host: String,
    pub path: String,
    /// The visitor's id for one day and this site.
    pub visitor: u64,
    /// The visitor's id under yesterday's salt, on events received shortly after midnight (UTC), else 0. It lets a
    /// visit continue over midnight.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub previous: u64,
    /// The visitor's longer-lived id, for retention only. It is stored apart from everything else here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returner: Option<Returner>,
    /// The site's token, if the site could not be looked up yet; then `site_id` and `account_id` are nil.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub site_token: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Host of the external referrer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub referrer_host: String,
    /// `utm_source` of the page's URL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub utm_source: String,
    /// `utm_medium` of the page's URL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub utm_medium: String,
    /// `utm_campaign` of the page's URL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub utm_campaign: String,
    /// Source of the visit, by name if it is a known one; empty for direct visits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Channel of the visit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// ISO 3166-1 alpha-2 code of the country.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub country: String,
    /// Subdivision of the country, by ISO 3166-2 code or by name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// English name of the city.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub city: String,
    /// `desktop`, `mobile`, `tablet`, `tv`, `console`, …
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// Name of the browser, without the version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub browser: String,
    /// Name of the operating system, without the version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub os: String,
    /// Size class of the screen: `mobile`, `tablet`, `laptop` or `desktop`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub screen: String,
    /// Custom properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub props: Vec<(String, String)>,
    /// Milliseconds for which the page was visible and focused since the last report.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub engagement_ms: u32,
    /// Deepest scroll position in percent, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scroll_depth: Option<u8>,
}

/// A visitor under the longer-lived id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returner {
    /// Id for one epoch and this site.
    pub id: u64,
    /// Day in the site's time zone.
    pub day: NaiveDate,
    /// First day of the salt behind the id.
    pub epoch: NaiveDate,
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}
