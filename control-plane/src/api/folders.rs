//! Folders: group forms, pages, analytics sites and automations, and keep keys to a group.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::scopes::{Action, Resource, Scope};
use domain::{Cursor, folders};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::folders::{Folder, FolderChange};
use store::things::Thing;
use uuid::Uuid;
use web::{Created, Deleted, Json, Listed, Paging, Path, Problem, Query, Reply};

use super::moves;
use crate::App;
use crate::call::{Call, scope};

/// Most things shown with a folder.
const SHOWN_MAX: i64 = 1_000;

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("folders")
        .post("/api/folders", create, "Create a folder")
        .get("/api/folders", list, "List folders with what lies in them")
        .get("/api/folders/{id}", read, "Read a folder; ?include=resources lists what lies in it")
        .put("/api/folders/{id}", update, "Rename a folder")
        .delete("/api/folders/{id}", delete, "Delete a folder; what lay in it stays")
        .post("/api/folders/{id}/organize", moves::organize, "Move things into a folder")
        .post("/api/folders/{id}/ungroup", moves::ungroup, "Take things out of a folder")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewFolder {
    /// 1 to 80 characters.
    #[schemars(length(min = 1, max = folders::NAME_CHARS_MAX), regex(pattern = r"\S"))]
    name: String,
    /// At most 500 characters.
    #[schemars(length(max = folders::DESCRIPTION_CHARS_MAX))]
    description: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditedFolder {
    #[schemars(length(min = 1, max = folders::NAME_CHARS_MAX), regex(pattern = r"\S"))]
    name: Option<String>,
    /// Null removes it.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = folders::DESCRIPTION_CHARS_MAX))]
    description: Option<Option<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// `resources` to list what lies in it.
    include: Option<Include>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Include {
    Resources,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FolderView {
    id: Uuid,
    name: String,
    description: Option<String>,
    /// How many things of each kind lie in it.
    counts: Counts,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Counts {
    forms: i64,
    pages: i64,
    analytics: i64,
    automations: i64,
    total: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WholeFolder {
    #[serde(flatten)]
    folder: FolderView,
    /// What lies in it, of the kinds the caller may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<ThingView>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ThingView {
    /// `form`, `page`, `analytics` or `automation`.
    r#type: &'static str,
    id: Uuid,
    name: String,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Folders {
    folders: Vec<FolderView>,
    #[serde(flatten)]
    listed: Listed,
}

async fn create(
    call: Call<scope::FoldersCreate>,
    State(app): State<App>,
    Json(folder): Json<NewFolder>,
) -> Result<Created<FolderView>, Problem> {
    let complaints = folders::check(Some(&folder.name), folder.description.as_deref());
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    call.check_whole_account(Resource::Folders)?;
    call.check_new(Resource::Folders)?;
    let id = app.rng.uuid_v7(call.now);
    let (name, description) = (folder.name.trim(), folder.description.as_deref());
    let mut tx = store::begin(&app.db).await?;
    store::folders::insert_folder(&mut tx, call.account_id, id, name, description, call.now).await?;
    let folder = find(&call, &mut tx, id).await?;
    app.commit(tx, vec![]).await?;

    let fields = json!([{"name": "email", "label": "E-mail", "type": "email"}]);
    let form = json!({"name": "Contact", "fields": fields, "folderId": id});
    let key = json!({"label": folder.name, "folderId": id});
    Ok(call.created(view(folder)).next("fill", "forms.create", form, "Put a form into it").next(
        "delegate",
        "keys.create",
        key,
        "Make a key that sees only this folder",
    ))
}

async fn list(
    call: Call<scope::FoldersRead>,
    State(app): State<App>,
    Query(paging): Query<Paging>,
) -> Result<Reply<Folders>, Problem> {
    let part = call.list_filter(Resource::Folders, &paging)?;
    let mut conn = store::acquire(&app.db).await?;
    let mut rows =
        store::folders::list_folders(&mut conn, call.account_id, &part, call.restrictions()).await?;
    let listed = Listed::cut(&mut rows, part.limit, |row| Cursor { created_at: row.created_at, id: row.id });
    Ok(call
        .reply(Folders { folders: rows.into_iter().map(view).collect(), listed: listed.clone() })
        .part(listed))
}

async fn read(
    call: Call<scope::FoldersRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Query(wanted): Query<Wanted>,
) -> Result<Reply<WholeFolder>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Folders, id).await?;
    let folder = view(find(&call, &mut conn, id).await?);
    let mut resources = None;
    if wanted.include == Some(Include::Resources) {
        let things = store::things::list_in_folder(&mut conn, call.account_id, id, SHOWN_MAX).await?;
        resources = Some(things.into_iter().filter_map(|thing| shown(&call, thing)).collect());
    }
    Ok(call.reply(WholeFolder { folder, resources }))
}

async fn update(
    call: Call<scope::FoldersUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(edited): Json<EditedFolder>,
) -> Result<Reply<FolderView>, Problem> {
    let description = edited.description.as_ref().and_then(Option::as_deref);
    let complaints = folders::check(edited.name.as_deref(), description);
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let name = edited.name.map(|name| name.trim().to_owned());
    let change = FolderChange { name, description: edited.description };
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Folders, id).await?;
    store::folders::update_folder(&mut tx, call.account_id, id, &change, call.now).await?;
    let folder = find(&call, &mut tx, id).await?;
    app.commit(tx, vec![]).await?;
    Ok(call.reply(view(folder)))
}

async fn delete(
    call: Call<scope::FoldersDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deleted>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    store::keys::lock_all(&mut tx, call.account_id).await?;
    call.check_id(&mut tx, Resource::Folders, id).await?;
    // As when things are taken out one by one: what lies in no folder is out of reach for a key kept to one.
    call.check_whole_account(Resource::Folders)?;
    // A key that is kept to it could touch nothing any more; it must not come to touch everything.
    let revoked = store::keys::revoke_keys_of_folder(&mut tx, call.account_id, id, call.now).await?;
    store::folders::delete_folder(&mut tx, call.account_id, id).await?;
    app.commit(tx, vec![]).await?;
    app.credentials.invalidate(&revoked);
    Ok(call.reply(Deleted::now()))
}

async fn find<S>(call: &Call<S>, conn: &mut store::Conn, id: Uuid) -> Result<Folder, Problem> {
    let folder = store::folders::find_folder(conn, call.account_id, id, call.restrictions()).await?;
    folder.ok_or_else(|| Problem::not_found("folder"))
}

/// A thing as it is listed; nothing if the caller may not read it.
fn shown<S>(call: &Call<S>, thing: Thing) -> Option<ThingView> {
    let kind = Resource::from_word(&thing.kind)?;
    let may_read = call.scopes().allows(Scope::new(kind, Action::Read))
        && call.restrictions().ids_of(kind).is_none_or(|ids| ids.contains(&thing.id));
    let view =
        ThingView { r#type: moves::word(kind), id: thing.id, name: thing.name, created_at: thing.created_at };
    may_read.then_some(view)
}

fn view(folder: Folder) -> FolderView {
    let Folder { forms, pages, analytics, automations, .. } = folder;
    let total = forms + pages + analytics + automations;
    FolderView {
        id: folder.id,
        name: folder.name,
        description: folder.description,
        counts: Counts { forms, pages, analytics, automations, total },
        created_at: folder.created_at,
        updated_at: folder.updated_at,
    }
}
