//! Field mappings that give two fields of a form the same name, so that one answer could not be delivered under it.

use sqlx::query_as;
use uuid::Uuid;

use crate::{Conn, Error};

/// Two fields of a form that a webhook gives the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingConflict {
    pub webhook_id: Uuid,
    pub form_id: Uuid,
    /// Name of the form.
    pub form_name: String,
    /// A field that the webhook renames.
    pub renamed: String,
    /// The other field, which it may rename too.
    pub other: String,
    /// The name of both in deliveries.
    pub target: String,
}

/// Where to look for a conflict.
#[derive(Debug, Clone, Copy)]
pub enum MappingScope<'a> {
    /// In all forms of a webhook.
    Webhook(Uuid),
    /// In all webhooks of a form.
    Form(Uuid),
    /// In these webhooks of a form.
    FormWebhooks(Uuid, &'a [Uuid]),
}

/// Finds a conflict between the mapping of a webhook and the fields of a form that it receives events of.
pub async fn find_mapping_conflict(
    conn: &mut Conn,
    account_id: Uuid,
    scope: MappingScope<'_>,
) -> Result<Option<MappingConflict>, Error> {
    let webhook_id;
    let (webhook_ids, form_id) = match scope {
        MappingScope::Webhook(id) => {
            webhook_id = [id];
            (Some(webhook_id.as_slice()), None)
        }
        MappingScope::Form(id) => (None, Some(id)),
        MappingScope::FormWebhooks(id, webhook_ids) => (Some(webhook_ids), Some(id)),
    };
    let conflict = query_as!(
        MappingConflict,
        r#"select w.id as webhook_id, f.id as form_id, f.name as form_name, names[1] as "renamed!",
                  names[2] as "other!", target as "target!"
           from webhooks w
               join forms f on f.account_id = w.account_id
                   and (w.all_forms
                        or exists (select from webhook_forms l where l.webhook_id = w.id and l.form_id = f.id))
               cross join lateral (
                   select target, array_agg(name order by (w.field_mapping ? name) desc, place) as names
                   from (
                       select field ->> 'name' as name, place,
                              coalesce(w.field_mapping ->> (field ->> 'name'), field ->> 'name') as target
                       from jsonb_array_elements(f.fields) with ordinality as fields (field, place)
                   ) as targets
                   group by target having count(*) > 1
               ) as same
           where w.account_id = $1 and w.field_mapping is not null and ($2::uuid[] is null or w.id = any($2))
             and ($3::uuid is null or f.id = $3)
           limit 1"#,
        account_id,
        webhook_ids,
        form_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(conflict)
}
