//! Deleting pages, one or many: their entries are archived, each page in a transaction of its own.

use axum::extract::State;
use contract::Change;
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::callers::find_name;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Deleted, Json, Path, Problem, Reply};

use super::batch::check_count;
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Doomed {
    /// At most 200.
    #[schemars(length(min = 1, max = domain::pages::BATCH_MAX))]
    page_ids: Vec<Uuid>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ends {
    results: Vec<End>,
    deleted: usize,
    failed: usize,
    /// Entries of them all that were archived.
    entries_archived: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct End {
    id: Uuid,
    status: EndStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum EndStatus {
    Deleted,
    Error,
}

pub(super) async fn delete(
    call: Call<scope::PagesDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deleted>, Problem> {
    one(&call, &app, id).await?;
    Ok(call.reply(Deleted::now()))
}

pub(super) async fn delete_batch(
    call: Call<scope::PagesDelete>,
    State(app): State<App>,
    Json(doomed): Json<Doomed>,
) -> Result<Reply<Ends>, Problem> {
    check_count("pageIds", doomed.page_ids.len())?;
    let (mut results, mut entries_archived) = (Vec::new(), 0);
    let mut failure: Option<Problem> = None;
    for id in doomed.page_ids {
        let ended = match failure.clone() {
            None => one(&call, &app, id).await,
            Some(failure) => Err(failure),
        };
        match ended {
            Ok(archived) => {
                entries_archived += archived;
                results.push(End { id, status: EndStatus::Deleted, error: None });
            }
            Err(problem) => {
                if !problem.is_refusal() {
                    if results.is_empty() {
                        return Err(problem);
                    }
                    // It would only be waited for again, page by page.
                    failure = Some(problem.clone());
                }
                let error = Some(problem.detail().to_owned());
                results.push(End { id, status: EndStatus::Error, error });
            }
        }
    }
    let deleted = results.iter().filter(|result| result.status == EndStatus::Deleted).count();
    let failed = results.len() - deleted;
    Ok(call.reply(Ends { results, deleted, failed, entries_archived }))
}

/// Deletes a page; gives how many entries were archived.
async fn one(call: &Call<scope::PagesDelete>, app: &App, id: Uuid) -> Result<u64, Problem> {
    let (account_id, now) = (call.account_id, call.now);
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Pages, id).await?;
    let by = find_name(&mut tx, account_id, &call.caller.credential).await?;
    let archive_id = app.rng.uuid_v7(now);
    let archived = store::archives::insert_archive(&mut tx, account_id, id, archive_id, &by, now).await?;
    let gone = store::pages::delete_page(&mut tx, account_id, id).await?;
    let (subdomain_id, slug) = gone.ok_or_else(|| Problem::not_found("page"))?;
    usage::give_back(&mut tx, account_id, Counter::Projects).await?;
    app.commit(tx, vec![Change::Page { subdomain_id, slug }]).await?;
    Ok(archived)
}
