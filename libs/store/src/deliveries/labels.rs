//! Names and labels of the fields of claimed deliveries. A stored event has no order: Postgres does not keep that of a
//! `jsonb`. Their form has it, and the labels that people read.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::webhooks::FieldLabel;
use sqlx::query;
use uuid::Uuid;

use super::claims::Attempt;
use crate::{Conn, Error};

/// Reads the fields of the forms of these attempts, once for each form. An attempt of an event without
/// answers, or of a form that does not exist, keeps none.
pub async fn read_field_labels(conn: &mut Conn, attempts: &mut [Attempt]) -> Result<(), Error> {
    let forms: BTreeSet<(Uuid, Uuid)> = attempts.iter().filter_map(form_of).collect();
    if forms.is_empty() {
        return Ok(());
    }
    let (account_ids, ids): (Vec<Uuid>, Vec<Uuid>) = forms.into_iter().unzip();
    let rows = query!(
        r#"select f.id, array(select field ->> 'name' from jsonb_array_elements(f.fields) with ordinality
                              as fields (field, place) order by place) as "names!",
                  array(select field ->> 'label' from jsonb_array_elements(f.fields) with ordinality
                        as fields (field, place) order by place) as "labels!"
           from unnest($1::uuid[], $2::uuid[]) as wanted (account_id, id)
               join forms f on f.id = wanted.id and f.account_id = wanted.account_id"#,
        &account_ids,
        &ids,
    )
    .fetch_all(conn)
    .await?;
    for row in rows {
        let fields = row.names.into_iter().zip(row.labels).map(|(name, label)| FieldLabel { name, label });
        let fields: Arc<[FieldLabel]> = fields.collect();
        for attempt in
            attempts.iter_mut().filter(|attempt| form_of(attempt).is_some_and(|(_, id)| id == row.id))
        {
            attempt.fields = Arc::clone(&fields);
        }
    }
    Ok(())
}

/// Returns the account and the form that the answers of the event belong to.
fn form_of(attempt: &Attempt) -> Option<(Uuid, Uuid)> {
    let data = &attempt.payload["data"];
    data["fields"].as_object().filter(|fields| !fields.is_empty())?;
    let form_id = data["formId"].as_str().and_then(|id| id.parse().ok())?;
    Some((attempt.account_id, form_id))
}
