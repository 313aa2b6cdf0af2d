//! Webhooks that rename fields: two fields of a form must not get the same name.
//!
//! This check is a help for owners, and takes no lock: while a webhook's mapping and a form's fields are changed at once,
//! each change passes the check of the other one's former state. No answer is lost then, because deliveries give both
//! fields different names (`domain::webhooks::FieldNames`). A lock of both would let submissions wait for edits of
//! webhooks.

use domain::FieldError;
use store::Conn;
use store::webhooks::{MappingConflict, MappingScope, find_mapping_conflict};
use uuid::Uuid;
use web::Problem;

/// Rejects a form with two fields that one of its webhooks gives the same name. `is_of_fields` tells whether new fields
/// cause it, or new webhooks.
pub(super) async fn check(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    is_of_fields: bool,
) -> Result<(), Problem> {
    let found = find_mapping_conflict(conn, account_id, MappingScope::Form(form_id)).await?;
    found.map_or(Ok(()), |conflict| Err(problem(&conflict, is_of_fields)))
}

/// The same for a new form, but only among the webhooks that its request names. Those for all forms may belong to another
/// key, which the caller can neither read nor change.
pub(super) async fn check_new(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    webhook_ids: &[Uuid],
) -> Result<(), Problem> {
    if webhook_ids.is_empty() {
        return Ok(());
    }
    let scope = MappingScope::FormWebhooks(form_id, webhook_ids);
    let found = find_mapping_conflict(conn, account_id, scope).await?;
    found.map_or(Ok(()), |conflict| Err(problem(&conflict, false)))
}

fn problem(conflict: &MappingConflict, is_of_fields: bool) -> Problem {
    let (renamed, other, target) = (&conflict.renamed, &conflict.other, &conflict.target);
    let message = format!(
        "the webhook {} sends `{renamed}` and `{other}` under one name, `{target}`, so one of the two answers would be \
         lost",
        conflict.webhook_id
    );
    let field = if is_of_fields { "fields" } else { "webhookIds" };
    let problem = Problem::validation(vec![FieldError::new(field, "name_taken", message)]);
    problem.hint("rename a field, or change the webhook's fieldMapping: PATCH /api/webhooks/{id}")
}
