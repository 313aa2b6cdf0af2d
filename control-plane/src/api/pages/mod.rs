//! Pages: send HTML, get a live URL.

mod batch;
pub(super) mod checks;
mod create;
mod deletion;
mod update;
pub(super) mod versions;
pub(super) mod views;

use axum::extract::State;
use domain::scopes::Resource;
use store::pages::PageFilter;
use uuid::Uuid;
use web::{Path, Problem, Query, Reply, Sort, WithHeaders};

use self::create::create;
use self::update::update;
use self::views::{PageDetailView, PageView, find_detail};
use crate::App;
use crate::call::{Call, scope};
use crate::large_bodies;

const MAX_BODY_BYTES: usize = 4 << 20;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("pages")
        .post("/api/pages", create, "Create a page")
        .get("/api/pages", list, "List pages")
        .get("/api/pages/{id}", read, "Get a page with its content")
        .put("/api/pages/{id}", update, "Update a page")
        .delete("/api/pages/{id}", deletion::delete, "Delete a page permanently; its entries are archived")
        .delete("/api/pages/batch", deletion::delete_batch, "Delete up to 200 pages, each independently")
        .body_limit(MAX_BODY_BYTES)
        .post("/api/pages/batch", batch::batch, "Publish up to 200 pages, each independently")
        .body_limit(large_bodies::MAX_BYTES)
}

web::list_query!(PagesQuery {
    /// Filter by `metadata.collection`.
    collection: Option<String>,
    /// Filter by slug.
    slug: Option<String>,
    /// Filter by folder.
    folder_id: Option<Uuid>,
    /// Filter by subdomain.
    subdomain_id: Option<Uuid>,
    /// Order by creation; default `oldest`.
    sort: Option<Sort>,
});

web::list_response!(PageListResponse { pages: PageView });

async fn list(
    call: Call<scope::PagesRead>,
    State(app): State<App>,
    Query(query): Query<PagesQuery>,
) -> Result<Reply<PageListResponse>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let filter = call
        .list_filter_in(&mut conn, Resource::Pages, &query.pagination().sorted(query.sort), query.folder_id)
        .await?;
    let pages = PageFilter {
        collection: query.collection.as_deref(),
        slug: query.slug.as_deref(),
        subdomain_id: query.subdomain_id,
    };
    let found = store::pages::list_pages(&mut conn, call.account_id, &filter, &pages).await?;
    Ok(call.sorted_page(found, &filter, |row| PageView::new(&app, row)))
}

async fn read(
    call: Call<scope::PagesRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<WithHeaders<Reply<PageDetailView>>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Pages, id).await?;
    let (tag, page) = find_detail(&call, &app, &mut conn, id).await?;
    Ok(WithHeaders(tag, call.reply(page)))
}
