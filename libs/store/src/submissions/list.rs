//! Searches submissions.

use chrono::{DateTime, Utc};
use domain::answers::Answers;
use domain::submissions::Status;
use domain::{Cursor, json_bytes};
use futures::TryStreamExt;
use sqlx::query_as;
use sqlx::types::Json;
use uuid::Uuid;

use super::read::{Submission, SubmissionRow};
use super::search::build_query;
use crate::list_filter::collect_page;
use crate::{Conn, Error, ListPage};

/// Filter of a submission list.
#[derive(Debug, Clone, Default)]
pub struct SubmissionFilter {
    /// Words or their beginnings in web syntax: all of them, `"a phrase"`, `one or other`, `-without`.
    pub search: Option<String>,
    /// Inclusive.
    pub from: Option<DateTime<Utc>>,
    /// Exclusive.
    pub until: Option<DateTime<Utc>>,
    /// A field and its value; for multiple choices, one of them.
    pub answer: Option<(String, String)>,
    pub status: Option<Status>,
    /// Only rows after this one.
    pub after: Option<Cursor>,
    pub limit: i64,
}

/// Returns a page of the submissions of a form, newest first. Must run in a transaction.
pub async fn list_submissions(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    filter: &SubmissionFilter,
) -> Result<ListPage<Submission>, Error> {
    // A generic plan would read the whole form even if an index knows the term.
    let search = build_query(conn, filter.search.as_deref()).await?;
    if filter.search.is_some() && search.is_none() {
        return Ok(ListPage { rows: Vec::new(), has_more: false });
    }
    let (field, value) = filter.answer.as_ref().map(|(field, value)| (field, value)).unzip();
    let number = value.and_then(|value| value.trim().parse::<serde_json::Number>().ok());
    let rows = query_as!(
        SubmissionRow,
        r#"select id, form_id, external_id, payload as "payload: Json<Answers>",
                  extra as "extra: Json<Answers>", status, spam_reasons, entry_note, created_at, updated_at
           from submissions
           where account_id = $1 and form_id = $2 and ($3::timestamptz is null or (created_at, id) < ($3, $4))
             and ($5::timestamptz is null or created_at >= $5) and ($6::timestamptz is null or created_at < $6)
             and ($7::text is null or status = $7)
             and ($8::text is null or search @@ $8::text::tsquery)
             and ($9::text is null or case jsonb_typeof(payload -> $9)
                 when 'array' then payload -> $9 ? $10
                 when 'number' then (payload -> $9)::numeric = $11::text::numeric
                 else payload ->> $9 = $10 end)
           order by created_at desc, id desc limit $12"#,
        account_id,
        form_id,
        filter.after.map(|after| after.created_at),
        filter.after.map(|after| after.id).unwrap_or_default(),
        filter.from,
        filter.until,
        filter.status.map(Status::as_str),
        search,
        field,
        value,
        number.map(|number| number.to_string()),
        filter.limit.saturating_add(1),
    )
    .fetch(conn)
    .map_ok(Submission::try_from);
    let bytes_of = |row: &Result<Submission, Error>| {
        row.as_ref().map_or(0, |row| json_bytes(&row.payload) + json_bytes(&row.extra))
    };
    let page = collect_page(rows, filter.limit, bytes_of).await?;
    let rows = page.rows.into_iter().collect::<Result<_, _>>()?;
    Ok(ListPage { rows, has_more: page.has_more })
}
