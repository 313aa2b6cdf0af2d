//! Forms: what an account asks, and how many have answered.

use chrono::{DateTime, Utc};
use domain::fields::Field;
use domain::forms::{Settings, SpamGuard};
use domain::plans::Plan;
use domain::submissions::Happening;
use sqlx::query;
use sqlx::types::Json;
use uuid::Uuid;

use crate::accounts::read_plan;
use crate::{Conn, Error, ListFilter};

/// A form, as it is stored and as its owner sees it.
#[derive(Debug, Clone)]
pub struct Form {
    /// Its id.
    pub id: Uuid,
    /// The folder it lies in.
    pub folder_id: Option<Uuid>,
    /// Its name.
    pub name: String,
    /// What it asks.
    pub fields: Vec<Field>,
    /// Shown after a submission.
    pub success_message: Option<String>,
    /// On the button.
    pub submit_label: Option<String>,
    /// Where a browser goes after a submission.
    pub redirect_url: Option<String>,
    /// When it closes.
    pub closes_at: Option<DateTime<Utc>>,
    /// How many submissions it takes.
    pub max_submissions: Option<i64>,
    /// No two submissions agree on all of these fields.
    pub unique_by: Option<Vec<String>>,
    /// Whether anybody may see its results.
    pub public_results: bool,
    /// The page that gets an entry of each submission; it may be gone by now.
    pub auto_entry_page_id: Option<Uuid>,
    /// How it keeps programs out.
    pub spam: SpamGuard,
    /// Who is mailed of each submission.
    pub notify_email: Option<String>,
    /// How many it has.
    pub submission_count: i64,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was last edited; rises strictly, and so names what the form was when a submission was checked.
    pub updated_at: DateTime<Utc>,
}

impl Form {
    /// A form that asks `fields` and is told nothing else.
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
            submission_count: 0,
            created_at,
            updated_at: created_at,
        }
    }

    /// What its rules look at.
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
            notify_email: self.notify_email.as_deref(),
        }
    }
}

/// What visitors need of a form: its questions, and whose plan limits it.
#[derive(Debug, Clone)]
pub struct OpenForm {
    /// Whose it is.
    pub account_id: Uuid,
    /// What that account pays for.
    pub plan: Plan,
    /// Whether the operator has suspended that account.
    pub suspended: bool,
    /// How many webhooks there were, when it was looked up, that are told of its submissions.
    pub listeners: i64,
    /// The form.
    pub form: Form,
}

/// A row that has every column of a form.
macro_rules! form {
    ($row:expr) => {
        Form {
            id: $row.id,
            folder_id: $row.folder_id,
            name: $row.name,
            fields: $row.fields.0,
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
            },
            notify_email: $row.notify_email,
            submission_count: $row.submission_count,
            created_at: $row.created_at,
            updated_at: $row.updated_at,
        }
    };
}

/// A form of the account.
pub async fn find_form(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Form>, Error> {
    let row = query!(
        r#"select id, folder_id, name, fields as "fields: Json<Vec<Field>>", success_message, submit_label, redirect_url,
                  closes_at, max_submissions, unique_by, public_results, auto_entry_page_id, spam_honeypot,
                  spam_min_seconds, spam_proof_of_work, notify_email, created_at, updated_at,
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

/// The account's forms, oldest first.
pub async fn list_forms(conn: &mut Conn, account_id: Uuid, filter: &ListFilter) -> Result<Vec<Form>, Error> {
    let rows = query!(
        r#"select id, folder_id, name, fields as "fields: Json<Vec<Field>>", success_message, submit_label, redirect_url,
                  closes_at, max_submissions, unique_by, public_results, auto_entry_page_id, spam_honeypot,
                  spam_min_seconds, spam_proof_of_work, notify_email, created_at, updated_at,
                  (submission_count + coalesce((select sum(submissions) from form_tallies where form_id = forms.id), 0)
                  )::bigint as "submission_count!"
           from forms
           where account_id = $1 and ($2::uuid is null or folder_id = $2) and ($3::uuid[] is null or id = any($3))
             and ($4::timestamptz is null or (created_at, id) > ($4, $5))
           order by created_at, id limit $6::bigint + 1"#,
        account_id,
        filter.folder_id,
        filter.ids.as_deref(),
        filter.after.map(|after| after.created_at),
        filter.after.map(|after| after.id),
        filter.limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| form!(row)).collect())
}

/// The form behind a public address, whoever's it is: visitors have no account.
pub async fn find_open_form(conn: &mut Conn, id: Uuid) -> Result<Option<OpenForm>, Error> {
    let row = query!(
        r#"select f.account_id, a.plan, a.suspended_at is not null as "suspended!",
                  (select count(*) from webhooks w cross join wants(w.id, w.all_forms, w.events, f.id, $2)
                   where w.account_id = a.id and w.is_active) as "listeners!", f.id, f.folder_id, f.name,
                  f.fields as "fields: Json<Vec<Field>>", f.success_message, f.submit_label, f.redirect_url,
                  f.closes_at, f.max_submissions, f.unique_by, f.public_results, f.auto_entry_page_id,
                  f.spam_honeypot, f.spam_min_seconds, f.spam_proof_of_work, f.notify_email, f.created_at, f.updated_at,
                  (f.submission_count + coalesce((select sum(submissions) from form_tallies where form_id = f.id), 0)
                  )::bigint as "submission_count!"
           from forms f join accounts a on a.id = f.account_id where f.id = $1"#,
        id,
        Happening::Created.word(),
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
