//! Forms: describe one, get a hosted page and a submit endpoint.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::Cursor;
use domain::fields::{Field, MAX_FIELDS};
use domain::forms;
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::forms::Form;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Created, Deleted, Json, Listed, Paging, Path, Problem, Query, Reply};

use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("forms")
        .post("/api/forms", create, "Create a form")
        .get("/api/forms", list, "List forms")
        .get("/api/forms/{id}", read, "Read a form with its fields")
        .delete("/api/forms/{id}", delete, "Delete a form with its submissions for good")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewForm {
    #[schemars(length(min = 1, max = forms::NAME_CHARS_MAX))]
    name: String,
    #[schemars(length(min = 1, max = MAX_FIELDS))]
    fields: Vec<Field>,
    /// Shown after a submission.
    #[schemars(length(max = forms::SUCCESS_MESSAGE_CHARS_MAX))]
    success_message: Option<String>,
    /// On the button.
    #[schemars(length(max = forms::SUBMIT_LABEL_CHARS_MAX))]
    submit_label: Option<String>,
    /// Where a browser goes after a submission.
    #[schemars(extend("format" = "uri"))]
    redirect_url: Option<String>,
    /// After this the form is closed.
    closes_at: Option<DateTime<Utc>>,
    /// How many submissions it takes.
    #[schemars(range(min = 1, max = forms::MAX_SUBMISSIONS_MAX))]
    max_submissions: Option<i64>,
    /// Webhooks told of its submissions.
    #[serde(default)]
    webhook_ids: Vec<Uuid>,
    /// The folder it lies in.
    folder_id: Option<Uuid>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FormsQuery {
    /// Only forms in this folder.
    folder_id: Option<Uuid>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    #[schemars(extend("format" = "cursor"))]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FormAddresses {
    form_id: Uuid,
    /// A page that shows the form.
    hosted_form_url: String,
    /// Where submissions are posted; needs no key.
    submit_url: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FormView {
    id: Uuid,
    #[serde(flatten)]
    addresses: FormAddresses,
    name: String,
    folder_id: Option<Uuid>,
    fields: Vec<Field>,
    success_message: Option<String>,
    submit_label: Option<String>,
    redirect_url: Option<String>,
    closes_at: Option<DateTime<Utc>>,
    max_submissions: Option<i64>,
    submission_count: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Forms {
    forms: Vec<FormView>,
    #[serde(flatten)]
    listed: Listed,
}

async fn create(
    call: Call<scope::FormsCreate>,
    State(app): State<App>,
    Json(form): Json<NewForm>,
) -> Result<Created<FormAddresses>, Problem> {
    let mut new = Form::new(app.rng.uuid_v7(call.now), form.name, form.fields, call.now);
    new.success_message = form.success_message;
    new.submit_label = form.submit_label;
    new.redirect_url = form.redirect_url;
    new.closes_at = form.closes_at;
    new.max_submissions = form.max_submissions;
    let complaints = forms::check(&new.settings());
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let limit = call.limits().projects;
    let mut tx = store::begin(&app.db).await?;
    new.folder_id = call.folder_of_new(&mut tx, Resource::Forms, form.folder_id).await?;
    call.check_ids(&mut tx, Resource::Webhooks, &form.webhook_ids).await?;
    if !usage::take(&mut tx, call.account_id, Counter::Projects, limit).await? {
        return Err(call.quota_exceeded("projects", limit));
    }
    store::forms::insert_form(&mut tx, call.account_id, &new).await?;
    if !form.webhook_ids.is_empty() {
        store::webhooks::link_webhooks(&mut tx, call.account_id, new.id, &form.webhook_ids).await?;
    }
    app.commit(tx, vec![Change::Form { form_id: new.id }]).await?;

    let hook = json!({"url": "https://example.com/hook", "formIds": [new.id]});
    let submissions = json!({"id": new.id});
    Ok(call
        .created(addresses(&app, new.id))
        .next("notify", "webhooks.create", hook, "Have every submission sent to you, signed")
        .next("review", "submissions.list", submissions, "Read what has been submitted"))
}

async fn list(
    call: Call<scope::FormsRead>,
    State(app): State<App>,
    Query(query): Query<FormsQuery>,
) -> Result<Reply<Forms>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let part = call
        .part_in(&mut conn, Resource::Forms, &Paging::new(query.limit, query.cursor), query.folder_id)
        .await?;
    let mut rows = store::forms::list_forms(&mut conn, call.account_id, &part).await?;
    let listed = Listed::cut(&mut rows, part.limit, |row| Cursor { created_at: row.created_at, id: row.id });
    Ok(call
        .reply(Forms { forms: rows.into_iter().map(|row| view(&app, row)).collect(), listed: listed.clone() })
        .part(listed))
}

async fn read(
    call: Call<scope::FormsRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<FormView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Forms, id).await?;
    let form = store::forms::find_form(&mut conn, call.account_id, id).await?;
    Ok(call.reply(view(&app, form.ok_or_else(|| Problem::not_found("form"))?)))
}

async fn delete(
    call: Call<scope::FormsDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deleted>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Forms, id).await?;
    if !store::forms::delete_form(&mut tx, call.account_id, id).await? {
        return Err(Problem::not_found("form"));
    }
    usage::give_back(&mut tx, call.account_id, Counter::Projects).await?;
    app.commit(tx, vec![Change::Form { form_id: id }]).await?;
    Ok(call.reply(Deleted::now()))
}

fn addresses(app: &App, id: Uuid) -> FormAddresses {
    FormAddresses {
        form_id: id,
        hosted_form_url: app.addresses.form(id),
        submit_url: app.addresses.submit(id),
    }
}

fn view(app: &App, form: Form) -> FormView {
    FormView {
        id: form.id,
        addresses: addresses(app, form.id),
        name: form.name,
        folder_id: form.folder_id,
        fields: form.fields,
        success_message: form.success_message,
        submit_label: form.submit_label,
        redirect_url: form.redirect_url,
        closes_at: form.closes_at,
        max_submissions: form.max_submissions,
        submission_count: form.submission_count,
        created_at: form.created_at,
        updated_at: form.updated_at,
    }
}
