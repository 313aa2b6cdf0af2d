//! The searches of `find` steps: entries and submissions with certain values, newest first.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sqlx::types::Json;
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::entries::Entry;
use crate::list_filter::collect_page;
use crate::submissions::Submission;
use crate::{Conn, Error, ListPage, submissions};

/// What a search returns.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// Values that fields must equal, all of them. A list equals each of its values, and null a missing field.
    pub filter: &'a Map<String, Value>,
    /// Only what was created from then on.
    pub since: Option<DateTime<Utc>>,
    /// Maximum number of items.
    pub limit: i64,
}

/// Returns the newest entries of a page that match. Must run in a transaction.
pub async fn find_entries(
    conn: &mut Conn,
    account_id: Uuid,
    page_id: Uuid,
    search: Search<'_>,
) -> Result<ListPage<Entry>, Error> {
    let rows = query_as!(
        Entry,
        "select id, data, created_at from page_entries e
         where account_id = $1 and page_id = $2 and ($3::timestamptz is null or created_at >= $3)
           and not exists (
               select from jsonb_each($4::jsonb) as w (name, value)
               where case when jsonb_typeof(e.data -> w.name) = 'array' and jsonb_typeof(w.value) <> 'array'
                          then not (e.data -> w.name) @> jsonb_build_array(w.value)
                          else coalesce(e.data -> w.name, 'null') <> w.value end)
         order by created_at desc, id desc limit $5::bigint + 1",
        account_id,
        page_id,
        search.since,
        Json(search.filter) as _,
        search.limit,
    )
    .fetch(conn);
    collect_page(rows, search.limit, |entry: &Entry| domain::json_bytes(&entry.data)).await
}

/// Returns the newest submissions of a form that match, without spam. Must run in a transaction.
pub async fn find_submissions(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    search: Search<'_>,
) -> Result<ListPage<Submission>, Error> {
    // A generic plan would not know how many submissions are new enough.
    query!("select set_config('plan_cache_mode', 'force_custom_plan', true)").fetch_one(&mut *conn).await?;
    let rows = query_as!(
        submissions::SubmissionRow,
        r#"select id, form_id, external_id, payload as "payload: Json<domain::answers::Answers>",
                  extra as "extra: Json<domain::answers::Answers>", status, spam_reasons, entry_note, created_at,
                  updated_at
           from submissions s
           where account_id = $1 and form_id = $2 and status <> 'spam'
             and ($3::timestamptz is null or created_at >= $3)
             and not exists (
                 select from jsonb_each($4::jsonb) as w (name, value)
                 where case when jsonb_typeof(s.payload -> w.name) = 'array' and jsonb_typeof(w.value) <> 'array'
                            then not (s.payload -> w.name) @> jsonb_build_array(w.value)
                            else coalesce(s.payload -> w.name, 'null') <> w.value end)
           order by created_at desc, id desc limit $5::bigint + 1"#,
        account_id,
        form_id,
        search.since,
        Json(search.filter) as _,
        search.limit,
    )
    .fetch(conn);
    let page = collect_page(rows, search.limit, |row| domain::json_bytes(&row.payload.0)).await?;
    let rows = page.rows.into_iter().map(Submission::try_from).collect::<Result<_, _>>()?;
    Ok(ListPage { rows, has_more: page.has_more })
}
