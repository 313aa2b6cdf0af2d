//! Pages in responses.

use chrono::{DateTime, SecondsFormat, Utc};
use domain::Listed;
use domain::entries::ENTRIES_MAX;
use domain::pages::Content;
use domain::rendering::{self, Source};
use http::HeaderMap;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use store::ListPage;
use store::entries::Entry;
use store::pages::{Page, PageSummary};
use uuid::Uuid;
use web::{Problem, Reply, WithHeaders, etag};

use crate::App;
use crate::call::Call;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageView {
    pub(super) id: Uuid,
    /// Path of the page on its site: `index` is the root.
    pub(super) slug: String,
    /// Title of the page.
    title: String,
    /// Whether visitors can see the page.
    pub(super) is_published: bool,
    /// Time at which the page is published; null if none is scheduled.
    pub(super) publish_at: Option<DateTime<Utc>>,
    folder_id: Option<Uuid>,
    subdomain_id: Uuid,
    /// URL on the base host, sandboxed.
    page_url: String,
    /// URL on its own site, the one to share.
    subdomain_url: String,
    /// Number of page views; a view is counted within seconds.
    view_count: i64,
    /// Your own data.
    metadata: Value,
    created_at: DateTime<Utc>,
    /// Increases with every edit. Send it as `ifUnmodifiedSince` to reject an update if the page has changed since.
    #[serde(serialize_with = "in_milliseconds")]
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageDetailView {
    #[serde(flatten)]
    page: PageView,
    /// The whole HTML document.
    html: String,
    /// Style sheet added to the document's head; null for none.
    css: Option<String>,
    /// HTML of one entry; null for none.
    entry_template: Option<String>,
    /// Newest first, up to about 1 MiB.
    entries: Vec<EntryView>,
    /// How many of the entries the page shows: the newest whose HTML fits into 4 MB, or none without
    /// `<!-- service:entries -->`.
    entries_rendered: usize,
    /// Whether the page has more entries than these: `GET /api/pages/{id}/entries` lists all of them.
    has_more_entries: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryView {
    id: Uuid,
    /// Values by the names of the template's placeholders.
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
            subdomain_id: page.subdomain_id,
            view_count: page.views,
            metadata: page.metadata,
            created_at: page.created_at,
            updated_at: page.updated_at,
        }
    }
}

impl PageDetailView {
    fn new(app: &App, page: Page, entries: ListPage<Entry>, entries_rendered: usize) -> Self {
        let Page { summary, content, .. } = page;
        let Content { html, css, entry_template, .. } = content;
        let has_more_entries = entries.has_more;
        let entries = entries.rows.into_iter().map(EntryView::new).collect();
        let page = PageView::new(app, summary);
        Self { page, html, css, entry_template, entries, entries_rendered, has_more_entries }
    }
}

impl EntryView {
    pub(crate) fn new(entry: Entry) -> Self {
        let data = match entry.data {
            Value::Object(data) => data,
            _ => Map::new(),
        };
        Self { id: entry.id, data, created_at: entry.created_at }
    }
}

/// Always three decimals, so that timestamps sort as strings.
pub(super) fn millis(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn in_milliseconds<S: Serializer>(at: &DateTime<Utc>, writer: S) -> Result<S::Ok, S::Error> {
    writer.serialize_str(&millis(*at))
}

/// Commits an edit; returns the page after it.
pub(super) async fn finish<S>(
    call: Call<S>,
    app: &App,
    mut tx: store::Tx,
    id: Uuid,
) -> Result<WithHeaders<Reply<PageDetailView>>, Problem> {
    let page = store::pages::find_page(&mut tx, call.account_id, id).await?;
    let page = page.ok_or_else(|| Problem::not_found("page"))?;
    let change = page.location().into();
    let (tag, page) = detail(&call, app, &mut tx, page).await?;
    call.commit(app, tx, vec![change]).await?;
    Ok(WithHeaders(tag, call.reply(page)))
}

/// Returns a page with its content and entries, and its entity tag.
pub(super) async fn find_detail<S>(
    call: &Call<S>,
    app: &App,
    conn: &mut store::Conn,
    id: Uuid,
) -> Result<(HeaderMap, PageDetailView), Problem> {
    let page = store::pages::find_page(conn, call.account_id, id).await?;
    detail(call, app, conn, page.ok_or_else(|| Problem::not_found("page"))?).await
}

async fn detail<S>(
    call: &Call<S>,
    app: &App,
    conn: &mut store::Conn,
    page: store::pages::Page,
) -> Result<(HeaderMap, PageDetailView), Problem> {
    let (account_id, page_id, limit) = (call.account_id, page.summary.id, i64::from(ENTRIES_MAX));
    let entries = store::entries::list_entries(conn, account_id, page_id, None, limit).await?;
    let tag = etag(page.summary.updated_at);
    if entries.rows.is_empty() {
        return Ok((tag, PageDetailView::new(app, page, entries, 0)));
    }
    let mut data: Vec<Value> = entries.rows.iter().map(|entry| entry.data.clone()).collect();
    let mut last = entries.rows.last().filter(|_| entries.has_more).map(Entry::cursor);
    while let Some(after) = last {
        let more = store::entries::list_entries(conn, account_id, page_id, Some(after), limit).await?;
        last = more.rows.last().filter(|_| more.has_more).map(Entry::cursor);
        data.extend(more.rows.into_iter().map(|entry| entry.data));
    }
    let (html, entry_template) = (page.content.html.clone(), page.content.entry_template.clone());
    let counted = tokio::task::spawn_blocking(move || {
        let entry_template = entry_template.as_deref();
        rendering::rendered_entries(Source { html: &html, css: None, entry_template, entries: &data })
    });
    let count = counted.await.map_err(|error| {
        tracing::error!(%error, "the entries of a page can't be counted");
        Problem::nothing_changed()
    })?;
    Ok((tag, PageDetailView::new(app, page, entries, count)))
}
