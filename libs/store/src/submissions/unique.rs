//! Unique values of a form's submissions. For each digest exactly one row is the holder and blocks newer ones; further
//! rows with the same digest are duplicates from before the rule.

use domain::Cursor;
use domain::answers::Answers;
use domain::submissions::digest;
use sqlx::query;
use sqlx::types::Json;
use uuid::Uuid;

use crate::forms::Form;
use crate::{Conn, Error};

/// Submissions per batch.
const BATCH: i64 = 2_000;

/// Recomputes the unique digests of all submissions of a form after its `uniqueBy` or its fields changed. Equal ones
/// stay; the oldest becomes the holder. The caller must hold the form's lock.
pub async fn update_unique_digests(conn: &mut Conn, account_id: Uuid, form: &Form) -> Result<(), Error> {
    query!(
        "update submissions set unique_digest = null, is_twin = false
         where account_id = $1 and form_id = $2 and unique_digest is not null",
        account_id,
        form.id,
    )
    .execute(&mut *conn)
    .await?;
    let Some(unique_by) = form.unique_by.as_deref().filter(|names| !names.is_empty()) else { return Ok(()) };
    let mut after: Option<Cursor> = None;
    loop {
        let rows = query!(
            r#"select id, payload as "payload: Json<Answers>", created_at from submissions
               where account_id = $1 and form_id = $2 and status <> 'spam'
                 and ($3::timestamptz is null or (created_at, id) > ($3, $4))
               order by created_at, id limit $5"#,
            account_id,
            form.id,
            after.map(|after| after.created_at),
            after.map(|after| after.id).unwrap_or_default(),
            BATCH,
        )
        .fetch_all(&mut *conn)
        .await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(Cursor { created_at: last.created_at, id: last.id });
        let (ids, digests): (Vec<Uuid>, Vec<Vec<u8>>) = rows
            .iter()
            .filter_map(|row| Some((row.id, digest(&form.fields, unique_by, &row.payload)?.to_vec())))
            .unzip();
        write(conn, form.id, &ids, &digests).await?;
    }
}

/// The first of equal rows becomes the holder, unless an earlier batch has one.
async fn write(conn: &mut Conn, form_id: Uuid, ids: &[Uuid], digests: &[Vec<u8>]) -> Result<(), Error> {
    query!(
        "update submissions s
         set unique_digest = t.digest,
             is_twin = t.nth > 1 or exists (select from submissions o where o.form_id = $1
                                              and o.unique_digest = t.digest and not o.is_twin)
         from (select id, digest, row_number() over (partition by digest order by place) as nth
               from unnest($2::uuid[], $3::bytea[]) with ordinality as u (id, digest, place)) t
         where s.id = t.id and s.form_id = $1",
        form_id,
        ids,
        digests,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Where the holder of a digest is gone or has changed, makes the oldest duplicate the holder. Must be called in every
/// transaction that deletes submissions of a form or stops counting them.
pub async fn resolve_duplicates(conn: &mut Conn, account_id: Uuid, form_id: Uuid) -> Result<(), Error> {
    query!(
        "update submissions set is_twin = false where id in (
             select distinct on (t.unique_digest) t.id from submissions t
             where t.account_id = $1 and t.form_id = $2 and t.is_twin
               and not exists (select from submissions o where o.form_id = $2 and o.unique_digest = t.unique_digest
                                                             and not o.is_twin)
             order by t.unique_digest, t.created_at, t.id)",
        account_id,
        form_id,
    )
    .execute(conn)
    .await?;
    Ok(())
}
