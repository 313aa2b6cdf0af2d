//! Limits on stored spam, so that storage can't be filled for free. Each form keeps its newest spam for review, without
//! files, which are deleted on arrival.

use chrono::{DateTime, Utc};
use domain::submissions::{RATE_LIMITED_MAX, SPAM_BYTES_MAX, SPAM_MAX};
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// Deletes the oldest spam of a form beyond its limits, which submissions over the rate of their address have for
/// themselves: a flood must not replace spam that its owner may want to review. Nor may it replace itself for ever, so that
/// its bytes are limited by [`is_full_of_rate_limited`] only.
pub(super) async fn delete_excess(conn: &mut Conn, account_id: Uuid, form_id: Uuid) -> Result<(), Error> {
    // Concurrent deletions skip each other's rows; the next one deletes what both left.
    query!(
        "delete from submissions where id in (
             select id from submissions where id in (
                 select id from (
                     select id, row_number() over newest as nth,
                            sum(pg_column_size(payload) + pg_column_size(search)) over newest as bytes,
                            'rate' = any (spam_reasons) as is_rate_limited
                     from submissions where account_id = $1 and form_id = $2 and status = 'spam'
                     window newest as (partition by 'rate' = any (spam_reasons) order by created_at desc, id desc)
                 ) as kept where nth > $3 or (bytes > $4 and not is_rate_limited))
             for update skip locked)",
        account_id,
        form_id,
        SPAM_MAX,
        SPAM_BYTES_MAX,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns whether a form has stored as many submissions over the rate of their address as it may, or as many bytes of
/// them.
pub(super) async fn is_full_of_rate_limited(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
) -> Result<bool, Error> {
    let is_full = query_scalar!(
        r#"select count(*) >= $3 or coalesce(sum(pg_column_size(payload) + pg_column_size(search)), 0) >= $4 as "full!"
           from submissions
           where account_id = $1 and form_id = $2 and status = 'spam' and 'rate' = any (spam_reasons)"#,
        account_id,
        form_id,
        RATE_LIMITED_MAX,
        SPAM_BYTES_MAX,
    )
    .fetch_one(conn)
    .await?;
    Ok(is_full)
}

/// Deletes up to `limit` spam submissions of all accounts created before `before`. Returns how many; fewer than `limit`
/// means that none are left.
pub async fn delete_old_spam(conn: &mut Conn, before: DateTime<Utc>, limit: i64) -> Result<i64, Error> {
    let deleted = query_scalar!(
        r#"with gone as (
             delete from submissions where id in (
               select id from submissions where status = 'spam' and created_at < $1
               order by created_at limit $2 for update skip locked)
             returning 1)
           select count(*) as "count!" from gone"#,
        before,
        limit,
    )
    .fetch_one(conn)
    .await?;
    Ok(deleted)
}
