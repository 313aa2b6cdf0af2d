//! Moves resources into or out of a folder. Each item succeeds or fails on its own.

use axum::extract::State;
use domain::scopes::Resource;
use domain::{FieldError, folders};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;
use web::{JsonOfItems, Path, Problem, Reply, read_item, shown_id};

use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveResourcesRequest {
    /// At most 200 resources. An invalid one fails by itself.
    #[schemars(with = "Vec<ResourceRef>", length(min = 1, max = folders::MOVES_MAX))]
    resources: Vec<Value>,
}

/// A resource by type and id.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResourceRef {
    /// `form`, `page`, `analytics` or `automation`.
    #[schemars(extend("enum" = ["form", "page", "analytics", "automation"]))]
    r#type: String,
    /// Id of the resource.
    id: Uuid,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ResourceMovesResponse {
    /// One result per requested resource, in the requested order.
    results: Vec<ResourceMoveResult>,
    /// Number of resources that were moved.
    moved: usize,
    /// Number of resources that were not moved.
    failed: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ResourceMoveResult {
    /// Position in the request, from 0.
    index: usize,
    /// Type of the resource, as it was sent; empty if it was not.
    r#type: String,
    /// Id of the resource, as it was sent; empty if it was not.
    id: String,
    /// `moved` or `error`.
    status: &'static str,
    /// Why it was not moved; absent if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) async fn organize(
    call: Call<scope::FoldersUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    JsonOfItems(request): JsonOfItems<MoveResourcesRequest>,
) -> Result<Reply<ResourceMovesResponse>, Problem> {
    move_all(call, app, id, request, Direction::Into).await
}

pub(super) async fn ungroup(
    call: Call<scope::FoldersUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    JsonOfItems(request): JsonOfItems<MoveResourcesRequest>,
) -> Result<Reply<ResourceMovesResponse>, Problem> {
    move_all(call, app, id, request, Direction::OutOf).await
}

/// A requested resource, or why it is none.
struct Item {
    index: usize,
    r#type: String,
    id: String,
    resource: Result<(Resource, Uuid), Problem>,
}

impl Item {
    fn read((index, item): (usize, Value)) -> Self {
        let [r#type, id] = ["type", "id"].map(|name| item.get(name).map(shown_id).unwrap_or_default());
        let resource = read_item::<ResourceRef>(item).and_then(|ResourceRef { r#type, id }| {
            let message = "type must be one of form, page, analytics, automation";
            let unknown = || Problem::validation(vec![FieldError::new("type", "unknown_type", message)]);
            Ok((folders::kind(&r#type).ok_or_else(unknown)?, id))
        });
        Self { index, r#type, id, resource }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Into,
    OutOf,
}

async fn move_all(
    call: Call<scope::FoldersUpdate>,
    app: App,
    folder_id: Uuid,
    request: MoveResourcesRequest,
    direction: Direction,
) -> Result<Reply<ResourceMovesResponse>, Problem> {
    let errors = folders::check_moves(request.resources.len());
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Folders, folder_id).await?;
    if direction == Direction::OutOf {
        // A resource outside every folder is not accessible to a key restricted to a folder.
        call.check_whole_account(Resource::Folders)?;
    }
    let mut items: Vec<Item> = request.resources.into_iter().enumerate().map(Item::read).collect();
    // Locks rows in one order, so that concurrent calls can't deadlock.
    items.sort_by_key(|item| item.resource.as_ref().ok().map(|(_, id)| *id));
    let mut results = Vec::new();
    for Item { index, r#type, id, resource } in items {
        let error = match resource {
            Ok(resource) => move_one(&call, &mut tx, folder_id, resource, direction).await?,
            Err(problem) => Some(problem.detail().to_owned()),
        };
        let status = if error.is_none() { "moved" } else { "error" };
        results.push(ResourceMoveResult { index, r#type, id, status, error });
    }
    // Otherwise the log would name a change that did not happen.
    if results.iter().any(|result| result.error.is_none()) {
        call.commit(&app, tx, vec![]).await?;
    }
    results.sort_by_key(|result| result.index);
    let failed = results.iter().filter(|result| result.error.is_some()).count();
    Ok(call.reply(ResourceMovesResponse { moved: results.len() - failed, failed, results }))
}

/// Moves one resource; returns the reason if it was refused.
async fn move_one(
    call: &Call<scope::FoldersUpdate>,
    conn: &mut store::Conn,
    folder_id: Uuid,
    (kind, id): (Resource, Uuid),
    direction: Direction,
) -> Result<Option<String>, Problem> {
    if let Err(problem) = call.check_id(conn, kind, id).await {
        return if problem.is_client_error() { Ok(Some(problem.detail().to_owned())) } else { Err(problem) };
    }
    let (from, to) = match direction {
        Direction::Into => (None, Some(folder_id)),
        Direction::OutOf => (Some(folder_id), None),
    };
    let moved = store::resources::update_folder(conn, call.account_id, kind, id, from, to).await?;
    Ok((!moved).then(|| "the resource is not in this folder".to_owned()))
}

/// The API's name of a type of resource.
pub(super) fn type_name(kind: Resource) -> &'static str {
    match kind {
        Resource::Forms => "form",
        Resource::Pages => "page",
        Resource::Automations => "automation",
        _ => "analytics",
    }
}
