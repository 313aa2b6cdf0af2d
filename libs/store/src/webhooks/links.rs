//! Links between webhooks and forms.

use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

/// Links webhooks to a form. A webhook for all forms is from now on limited to its linked ones. Returns how many of
/// `webhook_ids` belong to the account.
pub async fn link_webhooks(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    webhook_ids: &[Uuid],
) -> Result<u64, Error> {
    let found = query!(
        "update webhooks set all_forms = false where account_id = $1 and id = any($2)",
        account_id,
        webhook_ids
    )
    .execute(&mut *conn)
    .await?;
    query!(
        "insert into webhook_forms (webhook_id, form_id)
         select id, $2 from webhooks where account_id = $1 and id = any($3) on conflict do nothing",
        account_id,
        form_id,
        webhook_ids,
    )
    .execute(conn)
    .await?;
    Ok(found.rows_affected())
}

/// Unlinks webhooks from a form.
pub async fn unlink_webhooks(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    webhook_ids: &[Uuid],
) -> Result<(), Error> {
    query!(
        "delete from webhook_forms l using webhooks w
         where w.id = l.webhook_id and w.account_id = $1 and l.form_id = $2 and w.id = any($3)",
        account_id,
        form_id,
        webhook_ids,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Links a webhook to exactly these forms of the account; `None` to all, also later ones.
pub async fn update_forms(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    form_ids: Option<&[Uuid]>,
) -> Result<(), Error> {
    query!(
        "update webhooks set all_forms = $3 where account_id = $1 and id = $2",
        account_id,
        id,
        form_ids.is_none()
    )
    .execute(&mut *conn)
    .await?;
    let form_ids = form_ids.unwrap_or_default();
    query!(
        "delete from webhook_forms l using webhooks w
         where w.account_id = $1 and w.id = $2 and l.webhook_id = w.id and l.form_id <> all($3)",
        account_id,
        id,
        form_ids,
    )
    .execute(&mut *conn)
    .await?;
    query!(
        "insert into webhook_forms (webhook_id, form_id)
         select w.id, f.id from webhooks w join forms f on f.account_id = w.account_id
         where w.account_id = $1 and w.id = $2 and f.id = any($3) on conflict do nothing",
        account_id,
        id,
        form_ids,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the links of these forms as pairs of form and webhook, oldest webhooks first. Webhooks for all forms have no
/// links.
pub async fn list_links(
    conn: &mut Conn,
    account_id: Uuid,
    form_ids: &[Uuid],
) -> Result<Vec<(Uuid, Uuid)>, Error> {
    let links = query!(
        "select l.form_id, l.webhook_id from webhook_forms l join webhooks w on w.id = l.webhook_id
         where w.account_id = $1 and l.form_id = any($2) order by w.created_at, w.id",
        account_id,
        form_ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(links.into_iter().map(|link| (link.form_id, link.webhook_id)).collect())
}
