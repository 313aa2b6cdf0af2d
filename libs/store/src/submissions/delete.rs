//! Deletes submissions: at the request of the person who sent them, or one by its id.
//!
//! Deleting a row also deletes its files and its deliveries with their bodies, even pending ones. Entries of pages and
//! archives are copies and are searched for here.

use chrono::{DateTime, Utc};
use contract::{Change, Signal};
use domain::answers::Answers;
use domain::fields::FieldType;
use domain::submissions::{Status, SubmissionEvent, SubmissionEventData, event_body};
use sqlx::{query, query_as};
use uuid::Uuid;

use super::unique::resolve_duplicates;
use super::update::update_count;
use crate::deliveries::{self, Event};
use crate::entries::PageLocation;
use crate::forms::{Form, find_form, lock_form};
use crate::write_context::WriteContext;
use crate::{Conn, Error, archives, automations, outbox, usage};

/// The result of an erasure request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// Number of deleted submissions.
    pub deleted: i64,
    /// Whether no more remain.
    pub is_all: bool,
    /// Signals to send after the commit; they only speed up processing.
    pub signals: Vec<Signal>,
}

/// A submission to delete.
struct Match {
    id: Uuid,
    status: String,
    created_at: DateTime<Utc>,
}

/// Deletes up to `limit` submissions of a form that contain an e-mail address in one of its spellings, which are in lower
/// case, including spam, with everything created from them. Webhooks receive the ids of those that counted. Searches the
/// e-mail fields, and all values of fields the form does not have, because their type is unknown. Returns `None` if there
/// is no such form.
pub async fn delete_submissions_by_email(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    spellings: &[String],
    limit: i64,
    context: &WriteContext<'_>,
) -> Result<Option<Erasure>, Error> {
    // Entries must not move between pages and archives while both are searched.
    archives::lock_entry_moves(conn, account_id).await?;
    // Before the form's lock: deleting files changes the counters, and a submission with files locks the counters
    // first.
    usage::lock(conn, account_id).await?;
    let Some(form) = find_form(conn, account_id, form_id).await? else { return Ok(None) };
    // Searching a large form takes a while and needs no lock; the rows found are checked again under the lock.
    let found = list_matches(conn, account_id, &form, spellings, None, limit).await?;
    if found.is_empty() {
        return Ok(Some(Erasure { deleted: 0, is_all: true, signals: Vec::new() }));
    }
    let Some(form) = lock_form(conn, account_id, form_id).await? else { return Ok(None) };
    let is_all = i64::try_from(found.len()).unwrap_or(limit) < limit;
    let found: Vec<Uuid> = found.into_iter().map(|one| one.id).collect();
    let matches = list_matches(conn, account_id, &form, spellings, Some(&found), limit).await?;
    let signals = delete_matches(conn, account_id, &form, &matches, context).await?;
    Ok(Some(Erasure { deleted: i64::try_from(matches.len()).unwrap_or(limit), is_all, signals }))
}

/// Deletes one submission with everything created from it. Webhooks receive its id if it counted. Returns signals to send
/// after the commit, or `None` if the form has no such submission.
pub async fn delete_submission(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    id: Uuid,
    context: &WriteContext<'_>,
) -> Result<Option<Vec<Signal>>, Error> {
    // In the same order as for an erasure.
    archives::lock_entry_moves(conn, account_id).await?;
    usage::lock(conn, account_id).await?;
    let Some(form) = lock_form(conn, account_id, form_id).await? else { return Ok(None) };
    let found = query_as!(
        Match,
        "select id, status, created_at from submissions where account_id = $1 and form_id = $2 and id = $3",
        account_id,
        form_id,
        id,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(found) = found else { return Ok(None) };
    delete_matches(conn, account_id, &form, &[found], context).await.map(Some)
}

/// Deletes these submissions of a locked form.
async fn delete_matches(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    matches: &[Match],
    context: &WriteContext<'_>,
) -> Result<Vec<Signal>, Error> {
    let form_id = form.id;
    let ids: Vec<Uuid> = matches.iter().map(|one| one.id).collect();
    let locations = delete_entries(conn, account_id, &ids).await?;
    query!("delete from submissions where account_id = $1 and id = any($2)", account_id, &ids)
        .execute(&mut *conn)
        .await?;
    // Runs hold copies of the answers. They are deleted after the submissions: deleting a submission waits for a run of
    // it that is being inserted.
    automations::delete_runs_of_submissions(conn, account_id, &ids).await?;
    let counted: Vec<&Match> = matches.iter().filter(|one| one.status != Status::Spam.as_str()).collect();
    let fewer = i64::try_from(counted.len()).unwrap_or(i64::MAX);
    update_count(conn, account_id, form_id, -fewer).await?;
    resolve_duplicates(conn, account_id, form_id).await?;
    let due = publish_deletions(conn, account_id, form, &counted, context).await?;
    let mut changes: Vec<Change> = locations.into_iter().map(Change::from).collect();
    changes.push(Change::Form { form_id });
    let mut signals = outbox::insert_orders(conn, &[], &changes, context.traceparent, context.now).await?;
    signals.extend(due);
    Ok(signals)
}

async fn list_matches(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    spellings: &[String],
    among: Option<&[Uuid]>,
    limit: i64,
) -> Result<Vec<Match>, Error> {
    let others = form.fields.iter().filter(|field| field.kind != FieldType::Email);
    let others: Vec<String> = others.map(|field| field.name.clone()).collect();
    let matches = query_as!(
        Match,
        r"select id, status, created_at from submissions
          where account_id = $1 and form_id = $2 and ($6::uuid[] is null or id = any($6)) and exists (
            select from (
              select text from jsonb_each_text(payload) as answer (field, text) where field <> all($3)
              union all
              -- Several texts of one unknown field are stored as one.
              select part from jsonb_each_text(extra) as answer (field, text), string_to_table(text, ';') as part
            ) as answers
            where lower(btrim(text, E' \t\r\n')) = any($4))
          order by created_at, id limit $5",
        account_id,
        form.id,
        &others,
        spellings,
        limit,
        among,
    )
    .fetch_all(conn)
    .await?;
    Ok(matches)
}

/// Deletes the entries created from submissions, including archived ones. Returns the locations of the affected pages.
async fn delete_entries(conn: &mut Conn, account_id: Uuid, ids: &[Uuid]) -> Result<Vec<PageLocation>, Error> {
    query!(
        "delete from archived_entries a using entry_archives x
         where x.id = a.archive_id and x.account_id = $1 and a.submission_id = any($2)",
        account_id,
        ids,
    )
    .execute(&mut *conn)
    .await?;
    // Locks the pages first and in one order, as an insert of an entry does.
    query!(
        "select from pages where account_id = $1 and id in (
           select page_id from page_entries where account_id = $1 and submission_id = any($2))
         order by id for no key update",
        account_id,
        ids,
    )
    .fetch_all(&mut *conn)
    .await?;
    let locations = query_as!(
        PageLocation,
        r#"with gone as (
               delete from page_entries where account_id = $1 and submission_id = any($2) returning page_id
           ), fewer as (select page_id, count(*) as count from gone group by page_id)
           update pages p set entry_count = entry_count - fewer.count from fewer where p.id = fewer.page_id
           returning p.subdomain_id, p.slug, p.path"#,
        account_id,
        ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(locations)
}

/// Sends webhooks the ids of the deleted submissions, without their content.
async fn publish_deletions(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    gone: &[&Match],
    context: &WriteContext<'_>,
) -> Result<Option<Signal>, Error> {
    let name = SubmissionEvent::Deleted.as_str();
    let listeners = deliveries::lock_listeners(conn, account_id, form.id, name).await?;
    if listeners.is_empty() || gone.is_empty() {
        return Ok(None);
    }
    for one in gone {
        let data = SubmissionEventData {
            form_id: form.id,
            form_name: &form.name,
            submission_id: one.id,
            external_id: None,
            submitted_at: one.created_at,
            fields: &Answers::new(),
        };
        let payload = event_body(SubmissionEvent::Deleted, context.now, &data);
        let event = Event {
            name,
            form_id: form.id,
            submission_id: None,
            payload: &payload,
            traceparent: context.traceparent,
            depth: context.depth,
            at: context.now,
        };
        deliveries::insert_deliveries(conn, account_id, &event, &listeners, context.new_id).await?;
    }
    Ok(Some(Signal::DeliveriesDue { webhook_ids: listeners }))
}
