//! Limits on stored spam, so that storage can't be filled for free. Each form keeps its newest spam for review, with the files
//! that fit beside it within the same limit of bytes.

use chrono::{DateTime, Utc};
use domain::confirmation;
use domain::submissions::{RATE_LIMITED_MAX, SPAM_BYTES_MAX, SPAM_MAX};
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// Deletes the oldest spam of a form beyond its limits, which submissions over the rate of their address have for
/// themselves: a flood must not replace spam that its owner may want to review. Nor may it replace itself for ever, so that
/// its bytes are limited by [`is_full_of_rate_limited`] only.
///
/// Rows are deleted for their number and for the bytes of their answers, never for those of files. Rows that may still wait
/// for their visitor's confirmation are the last ones. When the answers need the bytes of files, the oldest files are deleted.
///
/// Called for each new spam, before its files are bound.
pub(super) async fn delete_excess_spam(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let answered = confirmation::ANSWERED.map(str::to_owned);
    // Concurrent deletions skip each other's rows; the next one deletes what both left.
    query!(
        "delete from submissions where id in (
             select id from submissions where id in (
                 select id from (
                     select id, row_number() over kept as nth,
                            sum(pg_column_size(payload) + pg_column_size(search)
                                + coalesce(pg_column_size(extra), 0)) over kept as bytes,
                            'rate' = any (spam_reasons) as is_rate_limited
                     from submissions where account_id = $1 and form_id = $2 and status = 'spam'
                     window kept as (partition by 'rate' = any (spam_reasons)
                                     order by created_at > $5 and spam_reasons <@ $6 desc, created_at desc, id desc)
                 ) as rows where nth > $3 or (bytes::bigint > $4 and not is_rate_limited))
             for update skip locked)",
        account_id,
        form_id,
        SPAM_MAX,
        SPAM_BYTES_MAX,
        now - confirmation::TTL,
        &answered,
    )
    .execute(&mut *conn)
    .await?;
    query!(
        "delete from form_files where id in (
             select id from form_files where id in (
                 select id from (
                     select f.id, sum(f.size_bytes) over (order by s.created_at desc, s.id desc, f.id) as bytes
                     from submissions s join form_files f on f.submission_id = s.id
                     where s.account_id = $1 and s.form_id = $2 and s.status = 'spam'
                 ) as kept where bytes > $3::bigint - (
                     select coalesce(sum(pg_column_size(payload) + pg_column_size(search)
                                         + coalesce(pg_column_size(extra), 0)), 0)
                     from submissions
                     where account_id = $1 and form_id = $2 and status = 'spam'
                       and not 'rate' = any (spam_reasons)))
             for update skip locked)",
        account_id,
        form_id,
        SPAM_BYTES_MAX,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns whether `bytes` of further files fit beside a form's spam and its files. Submissions over the rate of their
/// address have no files.
pub async fn has_room_for_files(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    bytes: i64,
) -> Result<bool, Error> {
    let has_room = query_scalar!(
        r#"select coalesce(sum(pg_column_size(payload) + pg_column_size(search) + coalesce(pg_column_size(extra), 0)
                               + (select coalesce(sum(size_bytes), 0)::bigint from form_files f
                                  where f.submission_id = submissions.id)), 0)::bigint <= $3::bigint - $4 as "has_room!"
           from submissions
           where account_id = $1 and form_id = $2 and status = 'spam' and not 'rate' = any (spam_reasons)"#,
        account_id,
        form_id,
        SPAM_BYTES_MAX,
        bytes,
    )
    .fetch_one(conn)
    .await?;
    Ok(has_room)
}

/// Returns whether a form has stored as many submissions over the rate of their address as it may, or as many bytes of
/// them.
pub(super) async fn is_full_of_rate_limited(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
) -> Result<bool, Error> {
    let is_full = query_scalar!(
        r#"select count(*) >= $3
                  or coalesce(sum(pg_column_size(payload) + pg_column_size(search) + coalesce(pg_column_size(extra), 0)
                                  + (select coalesce(sum(size_bytes), 0)::bigint from form_files f
                                     where f.submission_id = submissions.id)), 0)::bigint >= $4 as "full!"
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
