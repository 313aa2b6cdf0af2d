//! Folders: group forms, pages, analytics sites and automations, and restrict keys to a group.

mod items;

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::folders;
use domain::scopes::{Action, Resource, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::folders::{Folder, FolderChange};
use store::resources::FolderItem;
use store::usage;
use uuid::Uuid;
use web::{Created, Deletion, Json, Path, Problem, Query, Reply, Sort};

use crate::App;
use crate::api::keys;
use crate::call::{Call, scope};
use crate::next_steps::After;

/// Most resources listed with a folder.
const SHOWN_MAX: i64 = 1_000;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("folders")
        .post("/api/folders", create, "Create a folder")
        .get("/api/folders", list, "List folders with their resource counts")
        .get("/api/folders/{id}", read, "Get a folder; include=resources adds its resources")
        .put("/api/folders/{id}", update, "Update a folder")
        .delete("/api/folders/{id}", delete, "Delete a folder; its resources stay")
        .post("/api/folders/{id}/organize", items::organize, "Move resources into a folder")
        .post("/api/folders/{id}/ungroup", items::ungroup, "Move resources out of a folder")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateFolderRequest {
    /// Display name, 1 to 80 characters.
    #[schemars(length(min = 1, max = folders::NAME_CHARS_MAX), regex(pattern = r"\S"))]
    name: String,
    /// Description, at most 500 characters.
    #[schemars(length(max = folders::DESCRIPTION_CHARS_MAX))]
    description: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateFolderRequest {
    /// Display name, 1 to 80 characters.
    #[schemars(length(min = 1, max = folders::NAME_CHARS_MAX), regex(pattern = r"\S"))]
    name: Option<String>,
    /// Description, at most 500 characters; null removes it.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = folders::DESCRIPTION_CHARS_MAX))]
    description: Option<Option<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FolderQuery {
    /// `resources` adds the list of the folder's resources.
    include: Option<FolderInclude>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FolderInclude {
    Resources,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FolderView {
    id: Uuid,
    /// Display name.
    name: String,
    /// Description; null if none is set.
    description: Option<String>,
    /// Number of resources of each type.
    counts: FolderCounts,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FolderCounts {
    /// Number of forms.
    forms: i64,
    /// Number of pages.
    pages: i64,
    /// Number of analytics sites.
    analytics: i64,
    /// Number of automations.
    automations: i64,
    /// Number of resources of all types.
    total: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FolderDetailResponse {
    #[serde(flatten)]
    folder: FolderView,
    /// The folder's resources of the types that the caller may read; only with `include=resources`.
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<ResourceView>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ResourceView {
    /// `form`, `page`, `analytics` or `automation`.
    r#type: &'static str,
    id: Uuid,
    /// Name or title of the resource.
    name: String,
    created_at: DateTime<Utc>,
}

web::list_response!(FolderListResponse { folders: FolderView });

async fn create(
    call: Call<scope::FoldersCreate>,
    State(app): State<App>,
    Json(folder): Json<CreateFolderRequest>,
) -> Result<Created<FolderView>, Problem> {
    let errors = folders::check(Some(&folder.name), folder.description.as_deref());
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    call.check_whole_account(Resource::Folders)?;
    call.check_new(Resource::Folders)?;
    let id = app.rng.uuid_v7(call.now);
    let (name, description) = (folder.name.trim(), folder.description.as_deref());
    let mut tx = store::begin(&app.db).await?;
    store::folders::insert_folder(&mut tx, call.account_id, id, name, description, call.now).await?;
    let folder = find(&call, &mut tx, id).await?;
    call.set_changed(Resource::Folders, id, name);
    call.commit(&app, tx, vec![]).await?;

    let next = call.suggestions(&app, After::Folder { id, name: &folder.name }).await;
    Ok(call.created(view(folder)).with_next(next))
}

web::list_query!(FoldersQuery {
    /// Order by creation; default `oldest`.
    sort: Option<Sort>,
});

async fn list(
    call: Call<scope::FoldersRead>,
    State(app): State<App>,
    Query(query): Query<FoldersQuery>,
) -> Result<Reply<FolderListResponse>, Problem> {
    let filter = call.list_filter(Resource::Folders, &query.pagination().sorted(query.sort))?;
    let mut conn = store::acquire(&app.db).await?;
    let rows = store::folders::list_folders(&mut conn, call.account_id, &filter, call.restrictions()).await?;
    Ok(call.list(rows, &filter, view))
}

async fn read(
    call: Call<scope::FoldersRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Query(query): Query<FolderQuery>,
) -> Result<Reply<FolderDetailResponse>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Folders, id).await?;
    let folder = view(find(&call, &mut conn, id).await?);
    let mut resources = None;
    if query.include == Some(FolderInclude::Resources) {
        let rows = store::resources::list_folder_items(&mut conn, call.account_id, id, SHOWN_MAX).await?;
        resources = Some(rows.into_iter().filter_map(|row| resource_view(&call, row)).collect());
    }
    Ok(call.reply(FolderDetailResponse { folder, resources }))
}

async fn update(
    call: Call<scope::FoldersUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(request): Json<UpdateFolderRequest>,
) -> Result<Reply<FolderView>, Problem> {
    let description = request.description.as_ref().and_then(Option::as_deref);
    let errors = folders::check(request.name.as_deref(), description);
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let name = request.name.map(|name| name.trim().to_owned());
    let change = FolderChange { name, description: request.description };
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Folders, id).await?;
    store::folders::update_folder(&mut tx, call.account_id, id, &change, call.now).await?;
    let folder = find(&call, &mut tx, id).await?;
    call.commit(&app, tx, vec![]).await?;
    Ok(call.reply(view(folder)))
}

async fn delete(
    call: Call<scope::FoldersDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deletion>, Problem> {
    // The caller's key works until the end, so a trial keeps a key that its deletion does not revoke.
    let mut tx = keys::begin(&call, &app).await?;
    call.check_id(&mut tx, Resource::Folders, id).await?;
    // As for moving resources out: a resource outside every folder is not accessible to a key restricted to a folder.
    call.check_whole_account(Resource::Folders)?;
    // A launch locks its pages, then their folder; a deletion locks the folder, then its pages: both lock the usage first.
    usage::lock(&mut tx, call.account_id).await?;
    // Keys restricted to this folder are revoked: without it they could access nothing, and must not gain access to
    // everything.
    let revoked = store::keys::revoke_keys_of_folder(&mut tx, call.account_id, id, call.now).await?;
    store::folders::delete_folder(&mut tx, call.account_id, id).await?;
    call.commit(&app, tx, vec![]).await?;
    app.credentials.invalidate(&revoked);
    Ok(call.reply(Deletion::now()))
}

async fn find<S>(call: &Call<S>, conn: &mut store::Conn, id: Uuid) -> Result<Folder, Problem> {
    let folder = store::folders::find_folder(conn, call.account_id, id, call.restrictions()).await?;
    folder.ok_or_else(|| Problem::not_found("folder"))
}

/// A resource as listed; `None` if the caller may not read it.
fn resource_view<S>(call: &Call<S>, row: FolderItem) -> Option<ResourceView> {
    let kind = Resource::parse(&row.kind)?;
    let may_read = call.scopes().allows(Scope::new(kind, Action::Read))
        && call.restrictions().ids_of(kind).is_none_or(|ids| ids.contains(&row.id));
    let view = ResourceView {
        r#type: items::type_name(kind),
        id: row.id,
        name: row.name,
        created_at: row.created_at,
    };
    may_read.then_some(view)
}

fn view(folder: Folder) -> FolderView {
    let Folder { forms, pages, analytics, automations, .. } = folder;
    let total = forms + pages + analytics + automations;
    FolderView {
        id: folder.id,
        name: folder.name,
        description: folder.description,
        counts: FolderCounts { forms, pages, analytics, automations, total },
        created_at: folder.created_at,
        updated_at: folder.updated_at,
    }
}
