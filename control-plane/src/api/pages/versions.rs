//! Page versions and rollback. The specification promises snapshots but shows no endpoints for them; these are
//! extensions.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::pages::Content;
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::pages::PageChange;
use store::versions::{Version, find_version, list_versions};
use uuid::Uuid;
use web::{Json, Path, Problem, Reply, WithHeaders};

use super::views::{PageDetailView, finish};
use crate::App;
use crate::call::{Call, scope};

pub(crate) fn resource() -> web::Resource<App> {
    web::Resource::new("versions")
        .get("/api/pages/{id}/versions", list, "List the last 20 versions of a page")
        .get("/api/pages/{id}/versions/{versionId}", read, "Get a version of a page with its content")
        .post("/api/pages/{id}/rollback", rollback, "Roll a page back to a version")
        .extension()
}

#[derive(Debug, Serialize, JsonSchema)]
struct VersionListResponse {
    /// Newest first; the first is the current content.
    versions: Vec<VersionView>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct VersionView {
    id: Uuid,
    /// Counts from 1 for each page.
    number: i32,
    /// Title of the page in this version.
    title: String,
    /// Whether it is the page's current content.
    is_current: bool,
    /// The deploy that wrote this version; null if none did.
    deploy_id: Option<Uuid>,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct VersionDetailView {
    #[serde(flatten)]
    version: VersionView,
    /// The whole HTML document in this version.
    html: String,
    /// Style sheet in this version; null for none.
    css: Option<String>,
    /// HTML of one entry in this version; null for none.
    entry_template: Option<String>,
    /// Your own data in this version.
    metadata: Value,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RollbackPageRequest {
    /// The version to restore.
    version_id: Uuid,
}

async fn list(
    call: Call<scope::PagesRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<VersionListResponse>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Pages, id).await?;
    let versions = list_versions(&mut conn, call.account_id, id).await?;
    let versions = versions.into_iter().enumerate().map(|(at, version)| view(version, at == 0));
    Ok(call.reply(VersionListResponse { versions: versions.collect() }))
}

async fn read(
    call: Call<scope::PagesRead>,
    State(app): State<App>,
    Path((id, version_id)): Path<(Uuid, Uuid)>,
) -> Result<Reply<VersionDetailView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Pages, id).await?;
    let content = find_version(&mut conn, call.account_id, id, version_id).await?;
    let versions = list_versions(&mut conn, call.account_id, id).await?;
    let listed = versions.into_iter().enumerate().find(|(_, version)| version.id == version_id);
    let (content, (at, version)) = content.zip(listed).ok_or_else(|| Problem::not_found("version"))?;
    let Content { html, css, entry_template, metadata, .. } = content;
    let version = view(version, at == 0);
    Ok(call.reply(VersionDetailView { version, html, css, entry_template, metadata }))
}

/// Publication and entries are not part of a version: both stay as they are.
async fn rollback(
    call: Call<scope::PagesUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(RollbackPageRequest { version_id }): Json<RollbackPageRequest>,
) -> Result<WithHeaders<Reply<PageDetailView>>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Pages, id).await?;
    let content = find_version(&mut tx, call.account_id, id, version_id).await?;
    let content = content.ok_or_else(|| Problem::not_found("version"))?;
    store::pages::update_page(&mut tx, call.account_id, id, PageChange::from(content), call.now).await?;
    finish(call, &app, tx, id).await
}

fn view(version: Version, is_current: bool) -> VersionView {
    let Version { id, number, title, deploy_id, created_at } = version;
    VersionView { id, number, title, is_current, deploy_id, created_at }
}
