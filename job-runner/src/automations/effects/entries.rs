//! `create_entry` and `delete_entry`.

use automation::execution::{EffectCall, EffectError, Failure};
use domain::entries::{self, DATA_BYTES_MAX};
use domain::scopes::{Action, Resource, Scope};
use serde_json::{Map, Value, json};
use store::activity::ChangedResource;
use store::entries::NewEntry;
use uuid::Uuid;

use super::abort::Abort;
use super::abort::{has_nul, invalid};
use super::entry_writer::NewRunEntry;
use super::transaction::Transaction;
use crate::automations::RunContext;

/// Adds an entry to a page, in one transaction with entries of other runs.
pub(super) async fn create(
    context: &RunContext,
    call: &EffectCall,
    page_id: Uuid,
    data: &Map<String, Value>,
) -> Result<Value, EffectError> {
    check(data)?;
    let now = context.state.clock.now();
    let id = context.state.rng.uuid_v7(now);
    let output = json!({"id": id, "pageId": page_id, "data": data, "createdAt": now});
    let entry = NewRunEntry {
        account_id: context.account_id,
        claim: context.claim,
        entry: NewEntry {
            id,
            page_id,
            data: Value::Object(data.clone()),
            submission_id: None,
            created_at: now,
        },
        step: context.step_row(call.record(output.clone())),
    };
    context.state.entry_writer.store(entry, call, &context.signals).await?;
    Ok(output)
}

fn check(data: &Map<String, Value>) -> Result<(), Failure> {
    if entries::is_too_large(data) {
        return Err(Failure::permanent(format!(
            "data may have at most {} KB as JSON",
            DATA_BYTES_MAX / 1024
        )));
    }
    let errors = entries::check_data(data);
    if !errors.is_empty() {
        return Err(invalid(&errors));
    }
    if data.iter().any(|(name, value)| name.contains('\0') || has_nul(value)) {
        return Err(Failure::permanent("data must not contain a NUL character"));
    }
    Ok(())
}

/// Removes an entry. It is no failure if there is none.
pub(super) async fn delete(
    transaction: &mut Transaction<'_>,
    page_id: Uuid,
    entry_id: Uuid,
) -> Result<Value, Abort> {
    let scope = Scope::new(Resource::Entries, Action::Delete);
    transaction.check(scope, Resource::Pages, page_id).await?;
    let account_id = transaction.context.account_id;
    let shown = store::entries::delete_entry(&mut transaction.tx, account_id, page_id, entry_id).await?;
    let deleted = shown.is_some();
    if let Some(shown) = shown {
        let page = ChangedResource { kind: Resource::Pages.as_str(), id: page_id, name: &shown.slug };
        transaction.record("entries.delete", Some(page)).await?;
        transaction.publish(shown.into()).await?;
    }
    Ok(json!({"deleted": deleted}))
}
