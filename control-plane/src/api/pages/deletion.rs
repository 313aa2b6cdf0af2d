//! Deletes pages. Their entries are archived; each page has its own transaction.

use axum::extract::State;
use domain::FieldError;
use domain::entries::ARCHIVES_BYTES_MAX;
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::credentials::find_name;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Code, Deletion, JsonOfItems, Path, Problem, Reply, read_id, shown_id};

use super::checks::check_count;
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeletePagesRequest {
    /// At most 200 ids. One that is not an id fails by itself.
    #[schemars(with = "Vec<Uuid>", length(min = 1, max = domain::pages::BATCH_MAX))]
    page_ids: Vec<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageDeletionsResponse {
    /// One result per page, in the order of the request.
    results: Vec<PageDeletionResult>,
    /// Number of deleted pages.
    deleted: usize,
    /// Number of pages that were not deleted.
    failed: usize,
    /// Number of archived entries of all deleted pages.
    entries_archived: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PageDeletionResult {
    /// Id of the page, as it was sent.
    id: String,
    /// The outcome for this page.
    status: PageDeletionStatus,
    /// Why it failed; absent if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PageDeletionStatus {
    Deleted,
    Error,
}

pub(super) async fn delete(
    call: Call<scope::PagesDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deletion>, Problem> {
    delete_one(&call, &app, id).await?;
    Ok(call.reply(Deletion::now()))
}

pub(super) async fn delete_batch(
    call: Call<scope::PagesDelete>,
    State(app): State<App>,
    JsonOfItems(request): JsonOfItems<DeletePagesRequest>,
) -> Result<Reply<PageDeletionsResponse>, Problem> {
    check_count("pageIds", request.page_ids.len())?;
    let (mut results, mut entries_archived) = (Vec::new(), 0);
    let mut failure: Option<Problem> = None;
    for (at, item) in request.page_ids.into_iter().enumerate() {
        let id = shown_id(&item);
        let result = match (read_id(&item), failure.clone()) {
            (None, _) => {
                let message = format!("pageIds[{at}] is not an id (expected a UUID)");
                Err(Problem::validation(vec![FieldError::new(format!("pageIds[{at}]"), "type", message)]))
            }
            (_, Some(failure)) => Err(failure),
            (Some(page_id), None) => delete_one(&call, &app, page_id).await,
        };
        match result {
            Ok(archived) => {
                entries_archived += archived;
                results.push(PageDeletionResult { id, status: PageDeletionStatus::Deleted, error: None });
            }
            Err(problem) => {
                if !problem.is_client_error() {
                    if results.is_empty() {
                        return Err(problem);
                    }
                    // A failure of a dependency would only repeat for each further page, after its timeout.
                    failure = Some(problem.clone());
                }
                let error = Some(problem.detail().to_owned());
                results.push(PageDeletionResult { id, status: PageDeletionStatus::Error, error });
            }
        }
    }
    let deleted = results.iter().filter(|result| result.status == PageDeletionStatus::Deleted).count();
    let failed = results.len() - deleted;
    Ok(call.reply(PageDeletionsResponse { results, deleted, failed, entries_archived }))
}

/// Deletes a page; returns the number of archived entries.
async fn delete_one(call: &Call<scope::PagesDelete>, app: &App, id: Uuid) -> Result<u64, Problem> {
    let (account_id, now) = (call.account_id, call.now);
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Pages, id).await?;
    let by = find_name(&mut tx, account_id, &call.caller.credential).await?;
    let archive_id = app.rng.uuid_v7(now);
    let archived = store::archives::insert_archive(&mut tx, account_id, id, archive_id, &by, now).await?;
    if archived > 0 && store::archives::sum_bytes(&mut tx, account_id).await? > ARCHIVES_BYTES_MAX {
        let detail = format!(
            "the page's entries would be archived, and the archives of an account hold at most {} MB",
            ARCHIVES_BYTES_MAX >> 20
        );
        let hint = "delete its entries first, or wait until older archives end: each is kept for 90 days";
        return Err(Problem::new(Code::Conflict, detail).hint(hint));
    }
    let gone = store::pages::delete_page(&mut tx, account_id, id).await?;
    let location = gone.ok_or_else(|| Problem::not_found("page"))?;
    usage::release(&mut tx, account_id, Counter::Projects).await?;
    call.set_changed(Resource::Pages, id, &location.slug);
    call.commit(app, tx, vec![location.into()]).await?;
    Ok(archived)
}
