//! Accepted events on their way from a collector's disk to the warehouse.
//!
//! An event is written once, as JSON, into a segment file, and may be read by a collector that was upgraded in
//! between. So the shape only grows: a new field gets `#[serde(default)]`, a name is never used for another
//! meaning, and empty values are left out, which keeps a line near 300 bytes and readable in an emergency.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// One event of a site's visitor, with everything known about it. Nothing here names a person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The event itself; tells whether one was counted twice.
    pub id: Uuid,
    /// Whose site it happened on.
    pub account_id: Uuid,
    /// The site.
    pub site_id: Uuid,
    /// When the collector took it, to the millisecond.
    #[serde(with = "chrono::serde::ts_milliseconds")]
    pub received_at: DateTime<Utc>,
    /// `page_view` or the name of a custom event.
    pub name: String,
    /// Host of the page.
    pub host: String,
    /// Path of the page.
    pub path: String,
    /// The visitor, for one day and this site.
    pub visitor: u64,
    /// The visitor's id under yesterday's salt, on events received soon after midnight (UTC), else 0: by this a
    /// visit goes on over midnight.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub previous: u64,
    /// Who did it under the longer-lived id, for retention alone. Stored apart from everything else here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returner: Option<Returner>,
    /// The token, of an event whose site couldn't be looked up yet; `site_id` and `account_id` are nil then.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub site_token: String,
    /// Title of the page.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Host of the foreign page that led here.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub referrer_host: String,
    /// `utm_source` of the page's address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub utm_source: String,
    /// `utm_medium` of the page's address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub utm_medium: String,
    /// `utm_campaign` of the page's address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub utm_campaign: String,
    /// Where the visit came from, by name if it is a known place; empty for nowhere in particular.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// By what kind of way it came.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// ISO 3166-1 alpha-2 code of the country.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub country: String,
    /// The country's part, by ISO 3166-2 code or by name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// The city's English name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub city: String,
    /// `desktop`, `mobile`, `tablet`, `tv`, `console`, …
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// The browser's name, without its version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub browser: String,
    /// The operating system's name, without its version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub os: String,
    /// `mobile`, `tablet`, `laptop` or `desktop`, by the screen's width.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub screen: String,
    /// Custom properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub props: Vec<(String, String)>,
    /// Milliseconds the page was visible and focused since the last report.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub engagement_ms: u32,
    /// Deepest scroll position in percent, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scroll_depth: Option<u8>,
}

/// A visitor who may come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returner {
    /// The visitor, for one epoch and this site.
    pub id: u64,
    /// The day, where the site is.
    pub day: NaiveDate,
    /// The first day of the salt behind the id.
    pub epoch: NaiveDate,
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}
