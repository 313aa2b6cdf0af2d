//! `find`: entries of a page or submissions of a form, newest first.

use automation::execution::{Failure, FindSource};
use chrono::{DateTime, Utc};
use domain::scopes::{Action, Resource, Scope};
use domain::timestamps;
use serde_json::{Map, Value, json};
use store::automations::{Search, find_entries, find_submissions};
use store::resources::list_resource_folders;

use super::abort::Abort;
use super::abort::{has_nul, invalid};
use super::authority::missing;
use super::transaction::Transaction;

/// Returns the items that match. What has more than 1 MiB in all is cut, and `hasMore` says so.
pub(super) async fn find(
    transaction: &mut Transaction<'_>,
    source: FindSource,
    filter: &Map<String, Value>,
    since: Option<DateTime<Utc>>,
    limit: u32,
) -> Result<Value, Abort> {
    if let Some(error) = timestamps::check("since", since) {
        return Err(invalid(&[error]).into());
    }
    if filter.iter().any(|(name, value)| name.contains('\0') || has_nul(value)) {
        return Err(Failure::permanent("where must not contain a NUL character").into());
    }
    let (kind, id, part) = match source {
        FindSource::Entries { page_id } => (Resource::Pages, page_id, Resource::Entries),
        FindSource::Submissions { form_id } => (Resource::Forms, form_id, Resource::Submissions),
    };
    transaction.check(Scope::new(part, Action::Read), kind, id).await?;
    let account_id = transaction.context.account_id;
    if list_resource_folders(&mut transaction.tx, account_id, kind, &[id]).await?.is_empty() {
        return Err(missing(kind, id).into());
    }
    let search = Search { filter, since, limit: i64::from(limit) };
    let (items, has_more): (Vec<Value>, bool) = match source {
        FindSource::Entries { .. } => {
            let found = find_entries(&mut transaction.tx, account_id, id, search).await.map_err(too_slow)?;
            let item = |entry: store::entries::Entry| json!({"id": entry.id, "data": entry.data, "createdAt": entry.created_at});
            (found.rows.into_iter().map(item).collect(), found.has_more)
        }
        FindSource::Submissions { .. } => {
            let found =
                find_submissions(&mut transaction.tx, account_id, id, search).await.map_err(too_slow)?;
            let item = |submission: store::submissions::Submission| {
                json!({
                    "id": submission.id,
                    "payload": submission.payload,
                    "externalId": submission.external_id,
                    "status": submission.status.as_str(),
                    "createdAt": submission.created_at,
                })
            };
            (found.rows.into_iter().map(item).collect(), found.has_more)
        }
    };
    Ok(json!({"count": items.len(), "items": items, "hasMore": has_more}))
}

/// Fails the attempt at once if the search takes too long, instead of repeating it until the time limit.
fn too_slow(error: store::Error) -> Abort {
    if error.is_statement_timeout() {
        let message = "the search took too long; narrow it with `since`";
        return Failure::transient(message).into();
    }
    error.into()
}
