//! Moving many things into a folder, or out of it: each for itself, so that one that can't be moved does not keep
//! the others.

use axum::extract::State;
use domain::scopes::Resource;
use domain::{Complaint, folders};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use web::{Json, Path, Problem, Reply};

use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Moves {
    /// At most 200.
    #[schemars(length(min = 1, max = folders::MOVES_MAX))]
    resources: Vec<Named>,
}

/// A thing by its kind and id.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    /// `form`, `page`, `analytics` or `automation`.
    #[schemars(extend("enum" = ["form", "page", "analytics", "automation"]))]
    r#type: String,
    id: Uuid,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Moved {
    results: Vec<Outcome>,
    /// How many were moved.
    moved: usize,
    /// How many were not.
    failed: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Outcome {
    index: usize,
    #[serde(flatten)]
    thing: Named,
    /// `moved` or `error`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) async fn organize(
    call: Call<scope::FoldersUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(moves): Json<Moves>,
) -> Result<Reply<Moved>, Problem> {
    carry_out(call, app, id, moves, Way::Into).await
}

pub(super) async fn ungroup(
    call: Call<scope::FoldersUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(moves): Json<Moves>,
) -> Result<Reply<Moved>, Problem> {
    carry_out(call, app, id, moves, Way::OutOf).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Into,
    OutOf,
}

async fn carry_out(
    call: Call<scope::FoldersUpdate>,
    app: App,
    folder_id: Uuid,
    moves: Moves,
    way: Way,
) -> Result<Reply<Moved>, Problem> {
    let mut complaints = folders::check_moves(moves.resources.len());
    for (at, named) in moves.resources.iter().enumerate() {
        if folders::kind(&named.r#type).is_none() {
            let field = format!("resources[{at}].type");
            let message = format!("{field} must be form, page, analytics or automation");
            complaints.push(Complaint::new(field, "unknown_type", message));
        }
    }
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Folders, folder_id).await?;
    if way == Way::OutOf {
        // What lies in no folder is out of reach for a key that is kept to one.
        call.check_whole_account(Resource::Folders)?;
    }
    let mut results = Vec::new();
    let mut things: Vec<(usize, Named)> = moves.resources.into_iter().enumerate().collect();
    // Rows are locked in one order by everybody, so that two calls at once can't wait for each other.
    things.sort_by_key(|(_, thing)| thing.id);
    for (index, thing) in things {
        let refused = one(&call, &mut tx, folder_id, &thing, way).await?;
        let status = if refused.is_none() { "moved" } else { "error" };
        results.push(Outcome { index, thing, status, error: refused });
    }
    app.commit(tx, vec![]).await?;
    results.sort_by_key(|result| result.index);
    let failed = results.iter().filter(|result| result.error.is_some()).count();
    Ok(call.reply(Moved { moved: results.len() - failed, failed, results }))
}

/// Moves one thing; gives why not.
async fn one(
    call: &Call<scope::FoldersUpdate>,
    conn: &mut store::Conn,
    folder_id: Uuid,
    thing: &Named,
    way: Way,
) -> Result<Option<String>, Problem> {
    let Some(kind) = folders::kind(&thing.r#type) else { return Ok(Some("unknown type".to_owned())) };
    if let Err(problem) = call.check_id(conn, kind, thing.id).await {
        return if problem.is_refusal() { Ok(Some(problem.detail().to_owned())) } else { Err(problem) };
    }
    let (from, to) = match way {
        Way::Into => (None, Some(folder_id)),
        Way::OutOf => (Some(folder_id), None),
    };
    let moved = store::things::update_folder(conn, call.account_id, kind, thing.id, from, to).await?;
    Ok((!moved).then(|| "it is not in this folder".to_owned()))
}

/// What an API call calls a thing of this kind.
pub(super) fn word(kind: Resource) -> &'static str {
    match kind {
        Resource::Forms => "form",
        Resource::Pages => "page",
        Resource::Automations => "automation",
        _ => "analytics",
    }
}
