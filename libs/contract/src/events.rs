//! Accepted events on their way from a collector's disk to the warehouse.
//!
//! An event is written once, as JSON, into a segment file, and may be read by a collector that was upgraded in
//! between. So the shape only grows: a new field gets `#[serde(default)]`, a name is never used for another
//! meaning, and empty values are left out, which keeps a line near 300 bytes and readable in an emergency.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// One event of a site's visitor, with everything known about it. Nothing here names a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
