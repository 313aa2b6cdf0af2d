//! The end of submissions at the wish of whoever gave them.
//!
//! With a row goes what refers to it: its deliveries with their bodies, those still to be sent too, and its files.
//! Entries of pages and of archives are copies, which are looked for here.

use chrono::{DateTime, Utc};
use contract::{Change, Signal};
use domain::answers::Answers;
use domain::fields::FieldType;
use domain::submissions::{Happening, Status, Told, event};
use sqlx::{query, query_as};
use uuid::Uuid;

use super::unique::resolve_duplicates;
use super::update::update_count;
use crate::deliveries::{self, Event};
use crate::entries::PageLocation;
use crate::forms::{Form, find_form, lock_form};
use crate::write_context::WriteContext;
use crate::{Conn, Error, archives, outbox, usage};

/// What became of a wish to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// So many submissions are gone.
    pub deleted: i64,
    /// Whether that was all of them; else there are more.
    pub is_all: bool,
    /// What may be told right after the commit, so that it is heard sooner than by looking.
    pub signals: Vec<Signal>,
}

/// A submission that is to go.
struct Doomed {
    id: Uuid,
    status: String,
    created_at: DateTime<Utc>,
}

/// Deletes up to `limit` submissions of a form of the account that bear an e-mail address, spam too, with everything
/// made of them; webhooks are told the ids of those that counted. The address is looked for in fields of type e-mail,
/// and in all that the form doesn't ask any more, of which it isn't known what it was. `None` if there is no such form.
pub async fn delete_submissions_by_email(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    email: &str,
    limit: i64,
    context: &WriteContext<'_>,
) -> Result<Option<Erasure>, Error> {
    // Entries move between pages and archives: not while they are looked for in both.
    archives::lock_entry_moves(conn, account_id).await?;
    // Before the form: files that go change the counters, and whoever hands in files takes these first.
    usage::lock(conn, account_id).await?;
    let Some(form) = find_form(conn, account_id, form_id).await? else { return Ok(None) };
    // A large form takes a while, for which nobody else needs to wait; what is found is looked at once more.
    let found = list_doomed(conn, account_id, &form, email, None, limit).await?;
    if found.is_empty() {
        return Ok(Some(Erasure { deleted: 0, is_all: true, signals: Vec::new() }));
    }
    let Some(form) = lock_form(conn, account_id, form_id).await? else { return Ok(None) };
    let is_all = i64::try_from(found.len()).unwrap_or(limit) < limit;
    let found: Vec<Uuid> = found.into_iter().map(|one| one.id).collect();
    let doomed = list_doomed(conn, account_id, &form, email, Some(&found), limit).await?;
    let ids: Vec<Uuid> = doomed.iter().map(|one| one.id).collect();
    let shown = delete_entries(conn, account_id, &ids).await?;
    query!("delete from submissions where account_id = $1 and id = any($2)", account_id, &ids)
        .execute(&mut *conn)
        .await?;
    let counted: Vec<&Doomed> = doomed.iter().filter(|one| one.status != Status::Spam.word()).collect();
    let fewer = i64::try_from(counted.len()).unwrap_or(limit);
    update_count(conn, account_id, form_id, -fewer).await?;
    resolve_duplicates(conn, account_id, form_id).await?;
    let due = tell(conn, account_id, &form, &counted, context).await?;
    let page = |PageLocation { subdomain_id, slug }| Change::Page { subdomain_id, slug };
    let mut changes: Vec<Change> = shown.into_iter().map(page).collect();
    changes.push(Change::Form { form_id });
    let mut signals = outbox::insert_orders(conn, &[], &changes, context.traceparent, context.now).await?;
    signals.extend(due);
    Ok(Some(Erasure { deleted: i64::try_from(doomed.len()).unwrap_or(limit), is_all, signals }))
}

async fn list_doomed(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    email: &str,
    among: Option<&[Uuid]>,
    limit: i64,
) -> Result<Vec<Doomed>, Error> {
    let others = form.fields.iter().filter(|field| field.kind != FieldType::Email);
    let others: Vec<String> = others.map(|field| field.name.clone()).collect();
    let doomed = query_as!(
        Doomed,
        r"select id, status, created_at from submissions
          where account_id = $1 and form_id = $2 and ($6::uuid[] is null or id = any($6)) and exists (
            select from jsonb_each_text(payload) as answer (field, text)
            where field <> all($3) and lower(btrim(text, E' \t\r\n')) = $4)
          order by created_at, id limit $5",
        account_id,
        form.id,
        &others,
        email.trim().to_lowercase(),
        limit,
        among,
    )
    .fetch_all(conn)
    .await?;
    Ok(doomed)
}

/// Deletes the entries made of submissions, archived ones too; gives where those are served that were shown.
async fn delete_entries(conn: &mut Conn, account_id: Uuid, ids: &[Uuid]) -> Result<Vec<PageLocation>, Error> {
    query!(
        "delete from archived_entries a using entry_archives x
         where x.id = a.archive_id and x.account_id = $1 and a.submission_id = any($2)",
        account_id,
        ids,
    )
    .execute(&mut *conn)
    .await?;
    // Pages first and in one order, as whoever adds an entry does.
    query!(
        "select from pages where account_id = $1 and id in (
           select page_id from page_entries where account_id = $1 and submission_id = any($2))
         order by id for no key update",
        account_id,
        ids,
    )
    .fetch_all(&mut *conn)
    .await?;
    let shown = query_as!(
        PageLocation,
        r#"with gone as (
               delete from page_entries where account_id = $1 and submission_id = any($2) returning page_id
           ), fewer as (select page_id, count(*) as count from gone group by page_id)
           update pages p set entry_count = entry_count - fewer.count from fewer where p.id = fewer.page_id
           returning p.subdomain_id, p.slug"#,
        account_id,
        ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(shown)
}

/// Tells webhooks of the deletion: which submission it was, and nothing that it said.
async fn tell(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    gone: &[&Doomed],
    context: &WriteContext<'_>,
) -> Result<Option<Signal>, Error> {
    let name = Happening::Deleted.word();
    let listeners = deliveries::lock_listeners(conn, account_id, form.id, name).await?;
    if listeners.is_empty() || gone.is_empty() {
        return Ok(None);
    }
    for one in gone {
        let told = Told {
            form_id: form.id,
            form_name: &form.name,
            submission_id: one.id,
            external_id: None,
            submitted_at: one.created_at,
            fields: &Answers::new(),
        };
        let payload = event(Happening::Deleted, context.now, &told);
        let event = Event {
            name,
            form_id: form.id,
            submission_id: None,
            payload: &payload,
            traceparent: context.traceparent,
            at: context.now,
        };
        deliveries::insert_deliveries(conn, account_id, &event, &listeners, context.new_id).await?;
    }
    Ok(Some(Signal::DeliveriesDue { webhook_ids: listeners }))
}
