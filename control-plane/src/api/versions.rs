//! What a page was, and the way back. The specification promises snapshots and shows no way to them: these endpoints
//! are ours.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::pages::PageChange;
use store::versions::{Version, find_version, list_versions};
use uuid::Uuid;
use web::{Headed, Json, Path, Problem, Reply};

use super::page_views::WholePage;
use super::pages;
use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("versions")
        .get("/api/pages/{id}/versions", list, "List what a page was: its last 20 versions")
        .post("/api/pages/{id}/rollback", rollback, "Make a page again what it was in a version")
        .extension()
}

#[derive(Debug, Serialize, JsonSchema)]
struct Versions {
    /// The newest, which is what the page is now, first.
    versions: Vec<VersionView>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct VersionView {
    id: Uuid,
    /// Counts from 1 for each page.
    number: i32,
    title: String,
    is_current: bool,
    /// The deploy that wrote it.
    deploy_id: Option<Uuid>,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rollback {
    version_id: Uuid,
}

async fn list(
    call: Call<scope::PagesRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Versions>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Pages, id).await?;
    let versions = list_versions(&mut conn, call.account_id, id).await?;
    let versions = versions.into_iter().enumerate().map(|(at, version)| view(version, at == 0));
    Ok(call.reply(Versions { versions: versions.collect() }))
}

/// Whether visitors see the page is not part of a version, nor are its entries: both stay as they are.
async fn rollback(
    call: Call<scope::PagesUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(Rollback { version_id }): Json<Rollback>,
) -> Result<Headed<Reply<WholePage>>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Pages, id).await?;
    let content = find_version(&mut tx, call.account_id, id, version_id).await?;
    let content = content.ok_or_else(|| Problem::not_found("version"))?;
    store::pages::update_page(&mut tx, call.account_id, id, PageChange::from(content), call.now).await?;
    pages::finish(call, &app, tx, id).await
}

fn view(version: Version, is_current: bool) -> VersionView {
    let Version { id, number, title, deploy_id, created_at } = version;
    VersionView { id, number, title, is_current, deploy_id, created_at }
}
