//! Pages: send HTML, get a live URL.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::scopes::Resource;
use domain::{Cursor, pages};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::pages::{PageChange, PageSummary};
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Code, Created, Deleted, Json, Listed, Paging, Path, Problem, Query, Reply};

use crate::App;
use crate::call::{Call, scope};

const MAX_BODY_BYTES: usize = 4 << 20;

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("pages")
        .post("/api/pages", create, "Publish a page")
        .get("/api/pages", list, "List pages")
        .get("/api/pages/{id}", read, "Read a page with its content")
        .put("/api/pages/{id}", update, "Edit a page")
        .delete("/api/pages/{id}", delete, "Delete a page for good")
        .body_limit(MAX_BODY_BYTES)
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
    is_published: Option<bool>,
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
#[serde(rename_all = "camelCase")]
struct PageView {
    id: Uuid,
    slug: String,
    title: String,
    is_published: bool,
    folder_id: Option<Uuid>,
    /// On the base host, sandboxed.
    page_url: String,
    /// On its site: the address to show people.
    subdomain_url: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WholePage {
    #[serde(flatten)]
    page: PageView,
    html: String,
    css: Option<String>,
    metadata: Value,
    subdomain_id: Uuid,
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
    complaints.extend(pages::check_content(Some(&page.title), Some(&page.html), page.css.as_deref()));
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let mut tx = store::begin(&app.db).await?;
    let folder_id = call.folder_of_new(&mut tx, Resource::Pages, page.folder_id).await?;
    let subdomain = call.subdomain(&mut tx, page.subdomain_id).await?;
    let new = store::pages::NewPage {
        id: app.rng.uuid_v7(call.now),
        folder_id,
        subdomain_id: subdomain.id,
        slug: page.slug,
        title: page.title,
        html: page.html,
        css: page.css,
        metadata: Value::Object(page.metadata),
        is_published: page.is_published.unwrap_or(true),
        created_at: call.now,
    };
    if !store::pages::insert_page(&mut tx, call.account_id, &new).await? {
        let existing =
            store::pages::find_id_by_slug(&mut tx, call.account_id, subdomain.id, &new.slug).await?;
        let detail = format!("the site {} already has a page `{}`", subdomain.name, new.slug);
        let taken = Problem::new(Code::SlugTaken, detail);
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
    let view = view(&app, page.ok_or_else(|| Problem::not_found("page"))?.summary);
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

async fn list(
    call: Call<scope::PagesRead>,
    State(app): State<App>,
    Query(query): Query<PagesQuery>,
) -> Result<Reply<Pages>, Problem> {
    let PagesQuery { collection, folder_id, limit, cursor } = query;
    let mut conn = store::acquire(&app.db).await?;
    let part = call.part_in(&mut conn, Resource::Pages, &Paging::new(limit, cursor), folder_id).await?;
    let mut rows = store::pages::list_pages(&mut conn, call.account_id, &part, collection.as_deref()).await?;
    let listed = Listed::cut(&mut rows, part.limit, |row| Cursor { created_at: row.created_at, id: row.id });
    Ok(call
        .reply(Pages { pages: rows.into_iter().map(|row| view(&app, row)).collect(), listed: listed.clone() })
        .part(listed))
}

async fn read(
    call: Call<scope::PagesRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<WholePage>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Pages, id).await?;
    let page = store::pages::find_page(&mut conn, call.account_id, id).await?;
    let page = page.ok_or_else(|| Problem::not_found("page"))?;
    Ok(call.reply(whole(&app, page)))
}

async fn update(
    call: Call<scope::PagesUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(edited): Json<EditedPage>,
) -> Result<Reply<WholePage>, Problem> {
    let css = edited.css.as_ref().and_then(Option::as_deref);
    let complaints = pages::check_content(edited.title.as_deref(), edited.html.as_deref(), css);
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let EditedPage { title, html, css, is_published, folder_id } = edited;
    let change = PageChange { title, html, css, is_published, folder_id };
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Pages, id).await?;
    if let Some(wanted) = folder_id {
        call.check_move(&mut tx, wanted).await?;
    }
    store::pages::update_page(&mut tx, call.account_id, id, &change, call.now).await?;
    let page = store::pages::find_page(&mut tx, call.account_id, id).await?;
    let page = page.ok_or_else(|| Problem::not_found("page"))?;
    let change = Change::Page { subdomain_id: page.subdomain_id, slug: page.summary.slug.clone() };
    app.commit(tx, vec![change]).await?;
    Ok(call.reply(whole(&app, page)))
}

async fn delete(
    call: Call<scope::PagesDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deleted>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Pages, id).await?;
    let gone = store::pages::delete_page(&mut tx, call.account_id, id).await?;
    let (subdomain_id, slug) = gone.ok_or_else(|| Problem::not_found("page"))?;
    usage::give_back(&mut tx, call.account_id, Counter::Projects).await?;
    app.commit(tx, vec![Change::Page { subdomain_id, slug }]).await?;
    Ok(call.reply(Deleted::now()))
}

fn view(app: &App, page: PageSummary) -> PageView {
    PageView {
        id: page.id,
        page_url: app.addresses.short_page(&page.slug, &page.subdomain, page.holds_short_address),
        subdomain_url: app.addresses.page(&page.subdomain, &page.slug),
        slug: page.slug,
        title: page.title,
        is_published: page.is_published,
        folder_id: page.folder_id,
        created_at: page.created_at,
        updated_at: page.updated_at,
    }
}

fn whole(app: &App, page: store::pages::Page) -> WholePage {
    let store::pages::Page { summary, subdomain_id, html, css, metadata } = page;
    WholePage { page: view(app, summary), html, css, metadata, subdomain_id }
}
