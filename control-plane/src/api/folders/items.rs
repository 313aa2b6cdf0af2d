//! Moves resources into or out of a folder. Each item succeeds or fails on its own.

use axum::extract::State;
use domain::scopes::Resource;
use domain::{FieldError, folders};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use web::{Json, Path, Problem, Reply};

use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveResourcesRequest {
    /// At most 200 resources.
    #[schemars(length(min = 1, max = folders::MOVES_MAX))]
    resources: Vec<ResourceRef>,
}

/// A resource by type and id.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
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
    #[serde(flatten)]
    resource: ResourceRef,
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
    Json(request): Json<MoveResourcesRequest>,
) -> Result<Reply<ResourceMovesResponse>, Problem> {
    move_all(call, app, id, request, Direction::Into).await
}

pub(super) async fn ungroup(
    call: Call<scope::FoldersUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(request): Json<MoveResourcesRequest>,
) -> Result<Reply<ResourceMovesResponse>, Problem> {
    move_all(call, app, id, request, Direction::OutOf).await
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
    let mut errors = folders::check_moves(request.resources.len());
    for (at, resource) in request.resources.iter().enumerate() {
        if folders::kind(&resource.r#type).is_none() {
            let field = format!("resources[{at}].type");
            let message = format!("{field} must be form, page, analytics or automation");
            errors.push(FieldError::new(field, "unknown_type", message));
        }
    }
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Folders, folder_id).await?;
    if direction == Direction::OutOf {
        // A resource outside every folder is not accessible to a key restricted to a folder.
        call.check_whole_account(Resource::Folders)?;
    }
    let mut results = Vec::new();
    let mut resources: Vec<(usize, ResourceRef)> = request.resources.into_iter().enumerate().collect();
    // Locks rows in one order, so that concurrent calls can't deadlock.
    resources.sort_by_key(|(_, resource)| resource.id);
    for (index, resource) in resources {
        let error = move_one(&call, &mut tx, folder_id, &resource, direction).await?;
        let status = if error.is_none() { "moved" } else { "error" };
        results.push(ResourceMoveResult { index, resource, status, error });
    }
    app.commit(tx, vec![]).await?;
    results.sort_by_key(|result| result.index);
    let failed = results.iter().filter(|result| result.error.is_some()).count();
    Ok(call.reply(ResourceMovesResponse { moved: results.len() - failed, failed, results }))
}

/// Moves one resource; returns the reason if it was refused.
async fn move_one(
    call: &Call<scope::FoldersUpdate>,
    conn: &mut store::Conn,
    folder_id: Uuid,
    resource: &ResourceRef,
    direction: Direction,
) -> Result<Option<String>, Problem> {
    let Some(kind) = folders::kind(&resource.r#type) else { return Ok(Some("unknown type".to_owned())) };
    if let Err(problem) = call.check_id(conn, kind, resource.id).await {
        return if problem.is_client_error() { Ok(Some(problem.detail().to_owned())) } else { Err(problem) };
    }
    let (from, to) = match direction {
        Direction::Into => (None, Some(folder_id)),
        Direction::OutOf => (Some(folder_id), None),
    };
    let moved = store::resources::update_folder(conn, call.account_id, kind, resource.id, from, to).await?;
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
