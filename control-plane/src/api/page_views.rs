//! Pages as answers show them.

use chrono::{DateTime, SecondsFormat, Utc};
use domain::pages::Content;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use store::pages::{Page, PageSummary};
use uuid::Uuid;

use crate::App;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageView {
    pub(super) id: Uuid,
    pub(super) slug: String,
    title: String,
    is_published: bool,
    /// When it publishes itself.
    publish_at: Option<DateTime<Utc>>,
    folder_id: Option<Uuid>,
    /// On the base host, sandboxed.
    page_url: String,
    /// On its site: the address to show people.
    subdomain_url: String,
    /// How often visitors looked at it; counted within seconds.
    view_count: i64,
    created_at: DateTime<Utc>,
    /// Rises with every edit: give it as `ifUnmodifiedSince` to edit only what nobody else has edited since.
    #[serde(serialize_with = "in_milliseconds")]
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WholePage {
    #[serde(flatten)]
    page: PageView,
    html: String,
    css: Option<String>,
    entry_template: Option<String>,
    /// Its entries, the newest first.
    entries: Vec<EntryView>,
    metadata: Value,
    subdomain_id: Uuid,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntryView {
    pub(super) id: Uuid,
    data: Map<String, Value>,
    created_at: DateTime<Utc>,
}

impl PageView {
    pub(super) fn new(app: &App, page: PageSummary) -> Self {
        Self {
            id: page.id,
            page_url: app.addresses.short_page(&page.slug, &page.subdomain, page.holds_short_address),
            subdomain_url: app.addresses.page(&page.subdomain, &page.slug),
            slug: page.slug,
            title: page.title,
            is_published: page.is_published,
            publish_at: page.publish_at,
            folder_id: page.folder_id,
            view_count: page.views,
            created_at: page.created_at,
            updated_at: page.updated_at,
        }
    }
}

impl WholePage {
    pub(super) fn new(app: &App, page: Page, entries: Vec<store::entries::Entry>) -> Self {
        let Page { summary, subdomain_id, content } = page;
        let Content { html, css, entry_template, metadata, .. } = content;
        let entries = entries.into_iter().map(EntryView::new).collect();
        let page = PageView::new(app, summary);
        Self { page, html, css, entry_template, entries, metadata, subdomain_id }
    }
}

impl EntryView {
    pub(super) fn new(entry: store::entries::Entry) -> Self {
        let data = match entry.data {
            Value::Object(data) => data,
            _ => Map::new(),
        };
        Self { id: entry.id, data, created_at: entry.created_at }
    }
}

/// Always with three digits, so that later is greater also as text.
pub(super) fn millis(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn in_milliseconds<S: Serializer>(at: &DateTime<Utc>, writer: S) -> Result<S::Ok, S::Error> {
    writer.serialize_str(&millis(*at))
}
