//! Forms: what an account asks, and how many have answered.

use chrono::{DateTime, Utc};
use domain::fields::Field;
use domain::plans::Plan;
use sqlx::types::Json;
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::accounts::read_plan;
use crate::{Conn, Error, Part};

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
    /// How many it has.
    pub submission_count: i64,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was last edited.
    pub updated_at: DateTime<Utc>,
}

/// A form's columns as Postgres gives them.
struct FormRow {
    id: Uuid,
    folder_id: Option<Uuid>,
    name: String,
    fields: Json<Vec<Field>>,
    success_message: Option<String>,
    submit_label: Option<String>,
    redirect_url: Option<String>,
    closes_at: Option<DateTime<Utc>>,
    max_submissions: Option<i64>,
    submission_count: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<FormRow> for Form {
    fn from(row: FormRow) -> Self {
        Self {
            id: row.id,
            folder_id: row.folder_id,
            name: row.name,
            fields: row.fields.0,
            success_message: row.success_message,
            submit_label: row.submit_label,
            redirect_url: row.redirect_url,
            closes_at: row.closes_at,
            max_submissions: row.max_submissions,
            submission_count: row.submission_count,
            created_at: row.created_at,
            updated_at: row.updated_at,
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
    /// The form.
    pub form: Form,
}

/// Stores a form.
///
/// # Errors
/// The database's.
pub async fn insert_form(conn: &mut Conn, account_id: Uuid, form: &Form) -> Result<(), Error> {
    query!(
        "insert into forms (id, account_id, folder_id, name, fields, success_message, submit_label, redirect_url, closes_at,
                            max_submissions, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        form.id,
        account_id,
        form.folder_id,
        form.name,
        Json(&form.fields) as _,
        form.success_message,
        form.submit_label,
        form.redirect_url,
        form.closes_at,
        form.max_submissions,
        form.created_at,
        form.updated_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A form of the account.
///
/// # Errors
/// The database's.
pub async fn find_form(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Form>, Error> {
    let form = query_as!(
        FormRow,
        r#"select id, folder_id, name, fields as "fields: Json<Vec<Field>>", success_message, submit_label, redirect_url,
                  closes_at, max_submissions, submission_count, created_at, updated_at
           from forms where account_id = $1 and id = $2"#,
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(form.map(Form::from))
}

/// The account's forms, oldest first.
///
/// # Errors
/// The database's.
pub async fn list_forms(conn: &mut Conn, account_id: Uuid, part: &Part) -> Result<Vec<Form>, Error> {
    let forms = query_as!(
        FormRow,
        r#"select id, folder_id, name, fields as "fields: Json<Vec<Field>>", success_message, submit_label, redirect_url,
                  closes_at, max_submissions, submission_count, created_at, updated_at
           from forms
           where account_id = $1 and ($2::uuid is null or folder_id = $2) and ($3::uuid[] is null or id = any($3))
             and ($4::timestamptz is null or (created_at, id) > ($4, $5))
           order by created_at, id limit $6::bigint + 1"#,
        account_id,
        part.folder_id,
        part.ids.as_deref(),
        part.after.map(|after| after.created_at),
        part.after.map(|after| after.id),
        part.limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(forms.into_iter().map(Form::from).collect())
}

/// Deletes a form of the account with its submissions; gives whether there was one.
///
/// # Errors
/// The database's.
pub async fn delete_form(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<bool, Error> {
    let done =
        query!("delete from forms where account_id = $1 and id = $2", account_id, id).execute(conn).await?;
    Ok(done.rows_affected() > 0)
}

/// The form behind a public address, whoever's it is: visitors have no account.
///
/// # Errors
/// The database's.
pub async fn find_open_form(conn: &mut Conn, id: Uuid) -> Result<Option<OpenForm>, Error> {
    let row = query!(
        r#"select f.account_id, a.plan, a.suspended_at is not null as "suspended!", f.folder_id, f.name,
                  f.fields as "fields: Json<Vec<Field>>", f.success_message, f.submit_label, f.redirect_url,
                  f.closes_at, f.max_submissions, f.submission_count, f.created_at, f.updated_at
           from forms f join accounts a on a.id = f.account_id where f.id = $1"#,
        id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(OpenForm {
            account_id: row.account_id,
            plan: read_plan(&row.plan)?,
            suspended: row.suspended,
            form: Form {
                id,
                folder_id: row.folder_id,
                name: row.name,
                fields: row.fields.0,
                success_message: row.success_message,
                submit_label: row.submit_label,
                redirect_url: row.redirect_url,
                closes_at: row.closes_at,
                max_submissions: row.max_submissions,
                submission_count: row.submission_count,
                created_at: row.created_at,
                updated_at: row.updated_at,
            },
        })
    })
    .transpose()
}
