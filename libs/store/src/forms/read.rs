//! Reads forms.

use chrono::{DateTime, Utc};
use domain::appearance::Appearance;
use domain::fields::Field;
use domain::forms::{Settings, SpamGuard, UnknownFields};
use domain::json_bytes;
use domain::plans::Plan;
use domain::stored_fields::StoredFields;
use domain::submissions::SubmissionEvent;
use futures::{StreamExt, TryStreamExt};
use sqlx::query;
use sqlx::types::Json;
use uuid::Uuid;

use crate::accounts::read_plan;
use crate::list_filter::collect_page;
use crate::{Conn, Error, ListFilter, ListPage};

/// A form, as stored and as its owner sees it.
#[derive(Debug, Clone)]
pub struct Form {
    pub id: Uuid,
    pub folder_id: Option<Uuid>,
    pub name: String,
    pub fields: Vec<Field>,
    /// Shown after a submission.
    pub success_message: Option<String>,
    /// Label of the submit button.
    pub submit_label: Option<String>,
    /// Where browsers are redirected after a submission.
    pub redirect_url: Option<String>,
    pub closes_at: Option<DateTime<Utc>>,
    /// Maximum number of submissions.
    pub max_submissions: Option<i64>,
    /// No two submissions have equal values in all of these fields.
    pub unique_by: Option<Vec<String>>,
    /// Whether its results are public.
    pub public_results: bool,
    /// The page that gets an entry for each submission; it may have been deleted.
    pub auto_entry_page_id: Option<Uuid>,
    /// Its spam protection.
    pub spam: SpamGuard,
    /// The address that is notified of each submission.
    pub notify_email: Option<String>,
    /// What it does with answers to fields that it does not have.
    pub unknown_fields: UnknownFields,
    /// How its pages look.
    pub appearance: Appearance,
    pub submission_count: i64,
    pub created_at: DateTime<Utc>,
    /// Strictly increasing; identifies the version of the form that a submission was validated against.
    pub updated_at: DateTime<Utc>,
}

impl Form {
    /// Returns a form with these fields and default settings.
    pub fn new(id: Uuid, name: String, fields: Vec<Field>, created_at: DateTime<Utc>) -> Self {
        Self {
            id,
            folder_id: None,
            name,
            fields,
            success_message: None,
            submit_label: None,
            redirect_url: None,
            closes_at: None,
            max_submissions: None,
            unique_by: None,
            public_results: false,
            auto_entry_page_id: None,
            spam: SpamGuard::default(),
            notify_email: None,
            unknown_fields: UnknownFields::default(),
            appearance: Appearance::default(),
            submission_count: 0,
            created_at,
            updated_at: created_at,
        }
    }

    /// Returns the settings for validation.
    pub fn settings(&self) -> Settings<'_> {
        Settings {
            name: Some(&self.name),
            fields: Some(&self.fields),
            success_message: self.success_message.as_deref(),
            submit_label: self.submit_label.as_deref(),
            redirect_url: self.redirect_url.as_deref(),
            closes_at: self.closes_at,
            max_submissions: self.max_submissions,
            unique_by: self.unique_by.as_deref(),
            spam: self.spam,
            appearance: Some(&self.appearance),
            notify_email: self.notify_email.as_deref(),
        }
    }
}

/// A form as visitors use it, with the properties of its account.
#[derive(Debug, Clone)]
pub struct OpenForm {
    pub account_id: Uuid,
    pub plan: Plan,
    /// Whether its account is suspended.
    pub suspended: bool,
    /// Number of webhooks that receive its submissions, at the time of the lookup.
    pub listeners: i64,
    pub form: Form,
}

/// Builds a form from a row with all its columns.
macro_rules! form {
    ($row:expr) => {
        Form {
            id: $row.id,
            folder_id: $row.folder_id,
            name: $row.name,
            fields: $row.fields.0.0,
            success_message: $row.success_message,
            submit_label: $row.submit_label,
            redirect_url: $row.redirect_url,
            closes_at: $row.closes_at,
            max_submissions: $row.max_submissions,
            unique_by: $row.unique_by,
            public_results: $row.public_results,
            auto_entry_page_id: $row.auto_entry_page_id,
            spam: SpamGuard {
                honeypot: $row.spam_honeypot,
                min_seconds: $row.spam_min_seconds,
                proof_of_work: $row.spam_proof_of_work,
                per_minute: $row.spam_per_minute,
                per_day: $row.spam_per_day,
            },
            notify_email: $row.notify_email,
            unknown_fields: UnknownFields::parse(&$row.unknown_fields),
            appearance: $row.appearance.0,
            submission_count: $row.submission_count,
            created_at: $row.created_at,
            updated_at: $row.updated_at,
        }
    };
}

/// Returns a form of the account.
pub async fn find_form(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Form>, Error> {
    let row = query!(
        r#"select id, folder_id, name, fields as "fields: Json<StoredFields>", success_message, submit_label, redirect_url,
                  closes_at, max_submissions, unique_by, public_results, auto_entry_page_id, spam_honeypot,
                  spam_min_seconds, spam_proof_of_work, spam_per_minute, spam_per_day, notify_email,
                  unknown_fields, appearance as "appearance: Json<Appearance>", created_at, updated_at,
                  (submission_count + coalesce((select sum(submissions) from form_tallies where form_id = forms.id), 0)
                  )::bigint as "submission_count!"
           from forms where account_id = $1 and id = $2"#,
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| form!(row)))
}

/// Selects a page of forms; `$end` is the condition of the cursor, the order and the limit.
macro_rules! select_forms {
    ($conn:expr, $account_id:expr, $filter:expr, $end:literal) => {
        query!(
            r#"select id, folder_id, name, fields as "fields: Json<StoredFields>", success_message, submit_label, redirect_url,
                      closes_at, max_submissions, unique_by, public_results, auto_entry_page_id, spam_honeypot,
                      spam_min_seconds, spam_proof_of_work, spam_per_minute, spam_per_day, notify_email,
                      unknown_fields, appearance as "appearance: Json<Appearance>", created_at, updated_at,
                      (submission_count + coalesce((select sum(submissions) from form_tallies where form_id = forms.id), 0)
                      )::bigint as "submission_count!"
               from forms
               where account_id = $1 and ($2::uuid is null or folder_id = $2) and ($3::uuid[] is null or id = any($3))"#
                + $end,
            $account_id,
            $filter.folder_id,
            $filter.ids.as_deref(),
            $filter.after.map(|after| after.created_at),
            $filter.after.map(|after| after.id),
            $filter.limit,
        )
        .fetch($conn)
        .map_ok(|row| form!(row))
        .boxed()
    };
}

/// Returns a page of the account's forms.
pub async fn list_forms(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
) -> Result<ListPage<Form>, Error> {
    let rows = if filter.newest_first {
        select_forms!(
            conn,
            account_id,
            filter,
            " and ($4::timestamptz is null or (created_at, id) < ($4, $5))
              order by created_at desc, id desc limit $6::bigint + 1"
        )
    } else {
        select_forms!(
            conn,
            account_id,
            filter,
            " and ($4::timestamptz is null or (created_at, id) > ($4, $5))
              order by created_at, id limit $6::bigint + 1"
        )
    };
    collect_page(rows, filter.limit, |form| json_bytes(&form.fields)).await
}

/// Returns the form at a public URL. Takes no account, because visitors have none.
pub async fn find_open_form(conn: &mut Conn, id: Uuid) -> Result<Option<OpenForm>, Error> {
    let row = query!(
        r#"select f.account_id, a.plan, a.suspended_at is not null as "suspended!",
                  (select count(*) from webhooks w cross join wants(w.id, w.all_forms, w.events, f.id, $2)
                   where w.account_id = a.id and w.is_active) as "listeners!", f.id, f.folder_id, f.name,
                  f.fields as "fields: Json<StoredFields>", f.success_message, f.submit_label, f.redirect_url,
                  f.closes_at, f.max_submissions, f.unique_by, f.public_results, f.auto_entry_page_id,
                  f.spam_honeypot, f.spam_min_seconds, f.spam_proof_of_work, f.spam_per_minute,
                  f.spam_per_day, f.notify_email, f.unknown_fields, f.appearance as "appearance: Json<Appearance>",
                  f.created_at, f.updated_at,
                  (f.submission_count + coalesce((select sum(submissions) from form_tallies where form_id = f.id), 0)
                  )::bigint as "submission_count!"
           from forms f join accounts a on a.id = f.account_id where f.id = $1"#,
        id,
        SubmissionEvent::Created.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(OpenForm {
            account_id: row.account_id,
            plan: read_plan(&row.plan)?,
            suspended: row.suspended,
            listeners: row.listeners,
            form: form!(row),
        })
    })
    .transpose()
}
