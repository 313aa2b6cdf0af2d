//! Pages: send HTML, get a live URL.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::pages::{Content, Publication, Wish};
use domain::scopes::Resource;
use domain::{Cursor, instants, pages};
use http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::pages::PageChange;
use store::subdomains::Subdomain;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Code, Created, Headed, IfMatch, Json, Listed, Paging, Path, Problem, Query, Reply, etag};

use super::page_views::{PageView, WholePage, millis};
use super::{batch, deletion};
use crate::App;
use crate::call::{Call, scope};
use crate::large_json;

const MAX_BODY_BYTES: usize = 4 << 20;

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("pages")
        .post("/api/pages", create, "Publish a page")
        .get("/api/pages", list, "List pages")
        .get("/api/pages/{id}", read, "Read a page with its content")
        .put("/api/pages/{id}", update, "Edit a page")
        .delete("/api/pages/{id}", deletion::delete, "Delete a page for good; its entries are archived")
        .delete("/api/pages/batch", deletion::delete_batch, "Delete up to 200 pages, each for itself")
        .body_limit(MAX_BODY_BYTES)
        .post("/api/pages/batch", batch::batch, "Publish up to 200 pages, each for itself")
        .body_limit(large_json::MAX_BYTES)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewPage {
    /// Where on the site: `index` is the root. Can't be changed later.
    #[schemars(length(min = 2, max = 200), regex(pattern = pages::SLUG_PATTERN))]
    slug: String,
    #[schemars(length(min = 1, max = pages::TITLE_CHARS_MAX))]
    title: String,
    /// The whole document, at most 512 KB.
    #[schemars(length(max = pages::MAX_HTML_BYTES))]
    html: String,
    /// Put into the document's head, at most 128 KB.
    #[schemars(length(max = pages::MAX_CSS_BYTES))]
    css: Option<String>,
    /// Your own notes.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// Whether visitors see it; true unless told otherwise.
    is_published: Option<bool>,
    /// When it publishes itself; a time that is past publishes it at once. It beats `isPublished`.
    #[schemars(regex(pattern = instants::PATTERN))]
    publish_at: Option<DateTime<Utc>>,
    /// What each of its entries looks like, at most 64 KB: HTML with `{{placeholders}}` (letters, digits, `_`, `-`, `.`)
    /// in its text and in values of attributes. Entries stand where the HTML says `<!-- service:entries -->`.
    #[schemars(length(max = pages::MAX_TEMPLATE_BYTES))]
    entry_template: Option<String>,
    /// The account's first subdomain unless told otherwise.
    subdomain_id: Option<Uuid>,
    /// The folder it lies in.
    folder_id: Option<Uuid>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EditedPage {
    #[schemars(length(min = 1, max = pages::TITLE_CHARS_MAX))]
    title: Option<String>,
    #[schemars(length(max = pages::MAX_HTML_BYTES))]
    html: Option<String>,
    /// Null removes it.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = pages::MAX_CSS_BYTES))]
    css: Option<Option<String>>,
    /// Null removes it; entries stay.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = pages::MAX_TEMPLATE_BYTES))]
    entry_template: Option<Option<String>>,
    /// Clears `publishAt`, unless that is given too.
    is_published: Option<bool>,
    /// A time to come hides the page until then, one that is past publishes it; null clears the schedule.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<DateTime<Utc>>", regex(pattern = instants::PATTERN))]
    publish_at: Option<Option<DateTime<Utc>>>,
    /// The `updatedAt` of an earlier answer: if the page was edited since, nothing is changed. `If-Match` does the same.
    if_unmodified_since: Option<DateTime<Utc>>,
    /// Null takes it out of its folder.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<Uuid>")]
    folder_id: Option<Option<Uuid>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PagesQuery {
    /// Only pages whose `metadata.collection` is this.
    collection: Option<String>,
    /// Only pages in this folder.
    folder_id: Option<Uuid>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    #[schemars(extend("format" = "cursor"))]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Pages {
    pages: Vec<PageView>,
    #[serde(flatten)]
    listed: Listed,
}

async fn create(
    call: Call<scope::PagesCreate>,
    State(app): State<App>,
    Json(page): Json<NewPage>,
) -> Result<Created<PageView>, Problem> {
    let mut complaints = pages::check_slug(&page.slug);
    let (css, template) = (page.css.as_deref(), page.entry_template.as_deref());
    complaints.extend(pages::check_content(Some(&page.title), Some(&page.html), css, template));
    complaints.extend(instants::check("publishAt", page.publish_at));
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let mut tx = store::begin(&app.db).await?;
    let folder_id = call.new_resource_folder(&mut tx, Resource::Pages, page.folder_id).await?;
    let subdomain = call.subdomain(&mut tx, page.subdomain_id).await?;
    let wish = Wish { is_published: page.is_published, publish_at: page.publish_at.map(Some) };
    let new = store::pages::NewPage {
        id: app.rng.uuid_v7(call.now),
        folder_id,
        subdomain_id: subdomain.id,
        slug: page.slug,
        content: Content {
            title: page.title,
            html: page.html,
            css: page.css,
            entry_template: page.entry_template,
            metadata: Value::Object(page.metadata),
        },
        publication: Publication::NEW.after(wish, call.now),
        deploy_id: None,
        created_at: call.now,
    };
    if !store::pages::insert_page(&mut tx, call.account_id, &new).await? {
        let existing =
            store::pages::find_id_by_slug(&mut tx, call.account_id, subdomain.id, &new.slug).await?;
        let taken = slug_taken(&subdomain, &new.slug);
        let ids = existing.as_slice();
        // A page that this key may not touch it isn't told of either.
        return Err(match call.check_ids(&mut tx, Resource::Pages, ids).await {
            Ok(()) => taken
                .with("existingPageId", json!(existing))
                .hint("edit it with PUT /api/pages/{existingPageId}"),
            Err(refusal) if refusal.is_refusal() => taken.hint("choose another slug"),
            Err(failure) => failure,
        });
    }
    let limit = call.limits().projects;
    if !usage::take(&mut tx, call.account_id, Counter::Projects, limit).await? {
        return Err(call.quota_exceeded("projects", limit));
    }
    let page = store::pages::find_page(&mut tx, call.account_id, new.id).await?;
    let view = PageView::new(&app, page.ok_or_else(|| Problem::not_found("page"))?.summary);
    app.commit(tx, vec![Change::Page { subdomain_id: subdomain.id, slug: view.slug.clone() }]).await?;

    let edit = json!({"id": view.id, "html": "<h1>Better</h1>"});
    let form = json!({"name": "Contact", "fields": [{"name": "email", "label": "E-mail", "type": "email"}]});
    Ok(call.created(view).next("edit", "pages.update", edit, "Edit this page; visitors see it at once").next(
        "collect",
        "forms.create",
        form,
        "Put a form on it",
    ))
}

/// The site has a page with that slug.
pub(super) fn slug_taken(subdomain: &Subdomain, slug: &str) -> Problem {
    Problem::new(Code::SlugTaken, format!("the site {} already has a page `{slug}`", subdomain.name))
}

async fn list(
    call: Call<scope::PagesRead>,
    State(app): State<App>,
    Query(query): Query<PagesQuery>,
) -> Result<Reply<Pages>, Problem> {
    let PagesQuery { collection, folder_id, limit, cursor } = query;
    let mut conn = store::acquire(&app.db).await?;
    let part =
        call.list_filter_in(&mut conn, Resource::Pages, &Paging::new(limit, cursor), folder_id).await?;
    let mut rows = store::pages::list_pages(&mut conn, call.account_id, &part, collection.as_deref()).await?;
    let listed = Listed::cut(&mut rows, part.limit, |row| Cursor { created_at: row.created_at, id: row.id });
    Ok(call
        .reply(Pages {
            pages: rows.into_iter().map(|row| PageView::new(&app, row)).collect(),
            listed: listed.clone(),
        })
        .part(listed))
}

async fn read(
    call: Call<scope::PagesRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Headed<Reply<WholePage>>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Pages, id).await?;
    let (tag, page) = whole(&call, &app, &mut conn, id).await?;
    Ok(Headed(tag, call.reply(page)))
}

async fn update(
    call: Call<scope::PagesUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    if_match: IfMatch,
    Json(edited): Json<EditedPage>,
) -> Result<Headed<Reply<WholePage>>, Problem> {
    let css = edited.css.as_ref().and_then(Option::as_deref);
    let template = edited.entry_template.as_ref().and_then(Option::as_deref);
    let (title, html) = (edited.title.as_deref(), edited.html.as_deref());
    let mut complaints = pages::check_content(title, html, css, template);
    complaints.extend(instants::check("publishAt", edited.publish_at.flatten()));
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Pages, id).await?;
    if let Some(wanted) = edited.folder_id {
        call.check_move(&mut tx, wanted).await?;
    }
    let updated_at = store::pages::lock_page(&mut tx, call.account_id, id).await?;
    let updated_at = updated_at.ok_or_else(|| Problem::not_found("page"))?;
    if edited.if_unmodified_since.is_some_and(|since| since < updated_at) || !if_match.allows(updated_at) {
        return Err(stale(updated_at));
    }
    let change = PageChange {
        title: edited.title,
        html: edited.html,
        css: edited.css,
        entry_template: edited.entry_template,
        metadata: None,
        publication: Wish { is_published: edited.is_published, publish_at: edited.publish_at },
        folder_id: edited.folder_id,
        deploy_id: None,
    };
    store::pages::update_page(&mut tx, call.account_id, id, change, call.now).await?;
    finish(call, &app, tx, id).await
}

/// The page was edited since the caller read it.
fn stale(updated_at: DateTime<Utc>) -> Problem {
    let detail = format!("the page was edited meanwhile, at {}", millis(updated_at));
    Problem::new(Code::StaleWrite, detail)
        .with("updatedAt", json!(millis(updated_at)))
        .hint("read it again, and edit with the updatedAt it has now")
}

/// Commits an edit; gives the page as it is after it.
pub(super) async fn finish<S>(
    call: Call<S>,
    app: &App,
    mut tx: store::Tx,
    id: Uuid,
) -> Result<Headed<Reply<WholePage>>, Problem> {
    let page = store::pages::find_page(&mut tx, call.account_id, id).await?;
    let page = page.ok_or_else(|| Problem::not_found("page"))?;
    let change = Change::Page { subdomain_id: page.subdomain_id, slug: page.summary.slug.clone() };
    let (tag, page) = shown(&call, app, &mut tx, page).await?;
    app.commit(tx, vec![change]).await?;
    Ok(Headed(tag, call.reply(page)))
}

/// A page with its content and entries, and its tag.
async fn whole<S>(
    call: &Call<S>,
    app: &App,
    conn: &mut store::Conn,
    id: Uuid,
) -> Result<(HeaderMap, WholePage), Problem> {
    let page = store::pages::find_page(conn, call.account_id, id).await?;
    shown(call, app, conn, page.ok_or_else(|| Problem::not_found("page"))?).await
}

async fn shown<S>(
    call: &Call<S>,
    app: &App,
    conn: &mut store::Conn,
    page: store::pages::Page,
) -> Result<(HeaderMap, WholePage), Problem> {
    let entries = store::entries::list_entries(conn, call.account_id, page.summary.id).await?;
    Ok((etag(page.summary.updated_at), WholePage::new(app, page, entries)))
}
