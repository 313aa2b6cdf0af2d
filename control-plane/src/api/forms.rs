//! Forms: describe one, get a hosted page and a submit endpoint.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::fields::{Field, MAX_FIELDS};
use domain::forms::Settings;
use domain::scopes::Resource;
use domain::{Complaint, Cursor, forms, instants, presets};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::forms::Form;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Created, Deleted, Json, Listed, Paging, Path, Problem, Query, Reply};

use super::form_edits::update;
use super::form_views::{FormAddresses, FormView, GivenSpamGuard, addresses, views};
use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("forms")
        .post("/api/forms", create, "Create a form")
        .get("/api/forms", list, "List forms")
        .get("/api/forms/{id}", read, "Read a form with its fields")
        .put("/api/forms/{id}", update, "Edit a form")
        .delete("/api/forms/{id}", delete, "Delete a form with its submissions for good")
}

/// What a form is to be made of.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewForm {
    /// Needed without `workflowId`.
    #[schemars(length(min = 1, max = forms::NAME_CHARS_MAX))]
    name: Option<String>,
    /// Needed without `workflowId`.
    #[schemars(length(min = 1, max = MAX_FIELDS))]
    fields: Option<Vec<Field>>,
    /// A preset, for the name and the fields that are not given.
    pub(super) workflow_id: Option<String>,
    /// Shown after a submission.
    #[schemars(length(max = forms::SUCCESS_MESSAGE_CHARS_MAX))]
    success_message: Option<String>,
    /// On the button.
    #[schemars(length(max = forms::SUBMIT_LABEL_CHARS_MAX))]
    submit_label: Option<String>,
    /// Where a browser goes after a submission.
    #[schemars(length(max = forms::REDIRECT_URL_CHARS_MAX), extend("format" = "uri"))]
    redirect_url: Option<String>,
    /// After this the form is closed.
    #[schemars(regex(pattern = instants::PATTERN))]
    closes_at: Option<DateTime<Utc>>,
    /// No two submissions agree on all of these fields.
    #[schemars(length(max = forms::UNIQUE_BY_MAX))]
    unique_by: Option<Vec<String>>,
    /// How many submissions it takes.
    #[serde(default, deserialize_with = "web::whole_number_or_null")]
    #[schemars(range(min = 1, max = forms::MAX_SUBMISSIONS_MAX))]
    max_submissions: Option<i64>,
    /// Whether anybody may see its results; false unless told otherwise.
    public_results: Option<bool>,
    /// Webhooks told of its submissions. RequiredScope `webhooks:update`.
    #[serde(default)]
    webhook_ids: Vec<Uuid>,
    /// The folder it lies in.
    folder_id: Option<Uuid>,
    /// The page that gets an entry of each submission, by its `entryTemplate`: the placeholders are the fields' names.
    /// RequiredScope `entries:create`.
    auto_entry_page_id: Option<Uuid>,
    /// How hosted and embedded forms keep programs out.
    spam: Option<GivenSpamGuard>,
    /// Who is mailed of each submission: your own verified address, or one that has agreed by the link it is mailed.
    #[schemars(length(max = 254), extend("format" = "email"))]
    notify_email: Option<String>,
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
struct Forms {
    forms: Vec<FormView>,
    #[serde(flatten)]
    listed: Listed,
}

async fn create(
    call: Call<scope::FormsCreate>,
    State(app): State<App>,
    Json(given): Json<NewForm>,
) -> Result<Created<FormAddresses>, Problem> {
    make(call, &app, given).await
}

/// Makes a form, as whoever may make forms.
pub(super) async fn make<S>(
    call: Call<S>,
    app: &App,
    mut given: NewForm,
) -> Result<Created<FormAddresses>, Problem> {
    let (webhook_ids, folder_id) = (std::mem::take(&mut given.webhook_ids), given.folder_id);
    let mut new = given.form(app.rng.uuid_v7(call.now), call.now)?;
    let limit = call.limits().projects;
    let mut tx = store::begin(&app.db).await?;
    if let Some(address) = &new.notify_email {
        call.ask_recipient(app, &mut tx, address).await?;
    }
    new.folder_id = call.new_resource_folder(&mut tx, Resource::Forms, folder_id).await?;
    if let Some(page_id) = new.auto_entry_page_id {
        call.check_entry_page(&mut tx, page_id).await?;
    }
    if !usage::take(&mut tx, call.account_id, Counter::Projects, limit).await? {
        return Err(call.quota_exceeded("projects", limit));
    }
    store::forms::insert_form(&mut tx, call.account_id, &new).await?;
    if !webhook_ids.is_empty() {
        call.relink(&mut tx, new.id, &webhook_ids).await?;
    }
    app.commit(tx, vec![Change::Form { form_id: new.id }]).await?;

    let hook = json!({"url": "https://example.com/hook", "formIds": [new.id]});
    let submissions = json!({"id": new.id});
    Ok(call
        .created(addresses(app, new.id))
        .next("notify", "webhooks.create", hook, "Have every submission sent to you, signed")
        .next("review", "submissions.list", submissions, "Read what has been submitted"))
}

impl NewForm {
    /// The form that is asked for.
    fn form(self, id: Uuid, now: DateTime<Utc>) -> Result<Form, Problem> {
        let preset = match &self.workflow_id {
            None => None,
            Some(id) => Some(presets::find(id).ok_or_else(|| {
                let message = format!("there is no preset `{id}`; GET /api/workflows lists them");
                Problem::validation(vec![Complaint::new("workflowId", "unknown_preset", message)])
            })?),
        };
        let name = self.name.or_else(|| Some(preset?.name.to_owned()));
        let fields = self.fields.or_else(|| Some(preset?.fields()));
        let missing = [("name", name.is_none()), ("fields", fields.is_none())];
        let mut form = Form::new(id, name.unwrap_or_default(), fields.unwrap_or_default(), now);
        form.success_message = self.success_message;
        form.submit_label = self.submit_label;
        form.redirect_url = self.redirect_url;
        form.closes_at = self.closes_at;
        form.max_submissions = self.max_submissions;
        form.unique_by = self.unique_by;
        form.public_results = self.public_results.unwrap_or_default();
        form.auto_entry_page_id = self.auto_entry_page_id;
        form.spam = self.spam.unwrap_or_default().over(form.spam);
        form.notify_email = self.notify_email;
        let mut complaints = forms::check(&Settings {
            name: (!missing[0].1).then_some(&form.name),
            fields: (!missing[1].1).then_some(&form.fields),
            ..form.settings()
        });
        complaints.extend(missing.iter().filter(|(_, missing)| *missing).map(|(field, _)| {
            Complaint::new(*field, "required", format!("{field} is required unless workflowId is given"))
        }));
        if complaints.is_empty() { Ok(form) } else { Err(Problem::validation(complaints)) }
    }
}

async fn list(
    call: Call<scope::FormsRead>,
    State(app): State<App>,
    Query(query): Query<FormsQuery>,
) -> Result<Reply<Forms>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let part = call
        .list_filter_in(&mut conn, Resource::Forms, &Paging::new(query.limit, query.cursor), query.folder_id)
        .await?;
    let mut rows = store::forms::list_forms(&mut conn, call.account_id, &part).await?;
    let listed = Listed::cut(&mut rows, part.limit, |row| Cursor { created_at: row.created_at, id: row.id });
    let forms = views(&call, &app, &mut conn, rows).await?;
    Ok(call.reply(Forms { forms, listed: listed.clone() }).part(listed))
}

async fn read(
    call: Call<scope::FormsRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<FormView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Forms, id).await?;
    let form = store::forms::find_form(&mut conn, call.account_id, id).await?;
    let view = views(&call, &app, &mut conn, form.into_iter().collect()).await?.pop();
    Ok(call.reply(view.ok_or_else(|| Problem::not_found("form"))?))
}

async fn delete(
    call: Call<scope::FormsDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deleted>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Forms, id).await?;
    usage::lock(&mut tx, call.account_id).await?;
    if !store::forms::delete_form(&mut tx, call.account_id, id).await? {
        return Err(Problem::not_found("form"));
    }
    usage::give_back(&mut tx, call.account_id, Counter::Projects).await?;
    app.commit(tx, vec![Change::Form { form_id: id }]).await?;
    Ok(call.reply(Deleted::now()))
}
