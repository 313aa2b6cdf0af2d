//! Creates forms, from scratch or from a preset.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::fields::{Field, MAX_FIELDS};
use domain::forms::{Settings, UnknownFields};
use domain::scopes::Resource;
use domain::{FieldError, forms, timestamps, workflows};
use schemars::JsonSchema;
use serde::Deserialize;
use store::forms::Form;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Created, Json, Problem};

use super::views::{AppearanceInput, CreatedForm, SpamGuardInput, addresses};
use super::{closes_at, mappings};
use crate::App;
use crate::call::{Call, scope};
use crate::next_steps::After;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateFormRequest {
    /// Display name. Required without `workflowId`.
    #[schemars(length(min = 1, max = forms::NAME_CHARS_MAX))]
    name: Option<String>,
    /// The questions, in order. Required without `workflowId`.
    #[schemars(length(min = 1, max = MAX_FIELDS))]
    fields: Option<Vec<Field>>,
    /// Id of a preset that supplies the name and fields that are missing here.
    pub(crate) workflow_id: Option<String>,
    /// Message shown after a submission.
    #[schemars(length(max = forms::SUCCESS_MESSAGE_CHARS_MAX))]
    success_message: Option<String>,
    /// Label of the submit button.
    #[schemars(length(max = forms::SUBMIT_LABEL_CHARS_MAX))]
    submit_label: Option<String>,
    /// URL to which the browser is redirected after a submission.
    #[schemars(length(max = forms::REDIRECT_URL_CHARS_MAX), extend("format" = "uri"))]
    redirect_url: Option<String>,
    /// The form closes at this time: an instant such as `2030-01-31T18:00:00Z`, or a time or a day in the time zone of the
    /// account, `2030-01-31T18:00` or `2030-01-31`, which means the start of the day.
    #[schemars(regex(pattern = timestamps::PATTERN), extend("format" = "day-or-time"))]
    closes_at: Option<String>,
    /// Rejects a submission if its answers to all of these fields equal those of an earlier one.
    #[schemars(length(max = forms::UNIQUE_BY_MAX))]
    unique_by: Option<Vec<String>>,
    /// Maximum number of submissions.
    #[serde(default, deserialize_with = "web::whole_number_or_null")]
    #[schemars(range(min = 1, max = forms::MAX_SUBMISSIONS_MAX))]
    max_submissions: Option<i64>,
    /// Whether the results are public; default false.
    public_results: Option<bool>,
    /// Webhooks to notify of submissions. Requires `webhooks:update`.
    #[serde(default)]
    webhook_ids: Vec<Uuid>,
    /// Folder to create the form in; default: the key's folder.
    folder_id: Option<Uuid>,
    /// Page that gets an entry for each submission, rendered with its `entryTemplate`; the placeholders are the field
    /// names. Requires `entries:create`.
    auto_entry_page_id: Option<Uuid>,
    /// Spam protection of hosted and embedded forms.
    spam: Option<SpamGuardInput>,
    /// Logo, colour and corners of hosted and embedded forms.
    appearance: Option<AppearanceInput>,
    /// Address to e-mail about each submission: the owner's verified address, or, for a claimed account, one that confirms
    /// the link it is sent.
    #[schemars(length(max = 254), extend("format" = "email"))]
    notify_email: Option<String>,
    /// What to do with answers to fields that the form does not have: `ignore` (default), `store` or `refuse`.
    unknown_fields: Option<UnknownFields>,
}

pub(super) async fn create(
    call: Call<scope::FormsCreate>,
    State(app): State<App>,
    Json(request): Json<CreateFormRequest>,
) -> Result<Created<CreatedForm>, Problem> {
    create_form(call, &app, request).await
}

/// Creates a form for any caller that may create one, in whichever way its operation requires.
pub(crate) async fn create_form<S>(
    call: Call<S>,
    app: &App,
    mut request: CreateFormRequest,
) -> Result<Created<CreatedForm>, Problem> {
    let (webhook_ids, folder_id) = (std::mem::take(&mut request.webhook_ids), request.folder_id);
    let mut tx = store::begin(&app.db).await?;
    let closes_at = closes_at::parse(&mut tx, call.account_id, request.closes_at.as_deref()).await?;
    let mut new = request.form(app.rng.uuid_v7(call.now), call.now, closes_at)?;
    if let Some(address) = &new.notify_email {
        call.request_recipient(app, &mut tx, address).await?;
    }
    insert_form(&call, &mut tx, &mut new, folder_id).await?;
    if !webhook_ids.is_empty() {
        call.relink(&mut tx, new.id, &webhook_ids).await?;
    }
    mappings::check_new(&mut tx, call.account_id, new.id, &webhook_ids).await?;
    call.set_changed(Resource::Forms, new.id, &new.name);
    call.commit(app, tx, vec![Change::Form { form_id: new.id }]).await?;

    let next = call.suggestions(app, After::Form { id: new.id }).await;
    let urls = addresses(app, new.id);
    Ok(call.created(CreatedForm { urls, closes_at: new.closes_at }).with_next(next))
}

/// Inserts a validated form into the requested folder, by default the key's, and counts it. Checks everything that the form
/// refers to.
pub(crate) async fn insert_form<S>(
    call: &Call<S>,
    tx: &mut store::Tx,
    new: &mut Form,
    folder_id: Option<Uuid>,
) -> Result<(), Problem> {
    new.folder_id = call.new_resource_folder(tx, Resource::Forms, folder_id).await?;
    if let Some(asset_id) = new.appearance.logo_asset_id {
        call.check_logo(tx, asset_id).await?;
    }
    if let Some(page_id) = new.auto_entry_page_id {
        call.check_entry_page(tx, page_id).await?;
    }
    if !usage::reserve(tx, call.account_id, Counter::Projects, call.limits().projects).await? {
        return Err(call.count_exceeded(tx, Counter::Projects).await);
    }
    store::forms::insert_form(tx, call.account_id, new).await?;
    Ok(())
}

impl CreateFormRequest {
    /// The new form, validated.
    fn form(
        self,
        id: Uuid,
        now: DateTime<Utc>,
        closes_at: Result<Option<DateTime<Utc>>, FieldError>,
    ) -> Result<Form, Problem> {
        let preset = match &self.workflow_id {
            None => None,
            Some(id) => Some(workflows::find(id).ok_or_else(|| {
                let message = format!("there is no preset `{id}`; GET /api/workflows lists them");
                Problem::validation(vec![FieldError::new("workflowId", "unknown_preset", message)])
            })?),
        };
        let name = self.name.or_else(|| Some(preset?.name.to_owned()));
        let fields = self.fields.or_else(|| Some(preset?.fields()));
        let missing = [("name", name.is_none()), ("fields", fields.is_none())];
        let mut form = Form::new(id, name.unwrap_or_default(), fields.unwrap_or_default(), now);
        form.success_message = self.success_message;
        form.submit_label = self.submit_label;
        form.redirect_url = self.redirect_url;
        let unreadable = closes_at.as_ref().err().cloned();
        form.closes_at = closes_at.unwrap_or_default();
        form.max_submissions = self.max_submissions;
        form.unique_by = self.unique_by;
        form.public_results = self.public_results.unwrap_or_default();
        form.auto_entry_page_id = self.auto_entry_page_id;
        form.spam = self.spam.unwrap_or_default().over(form.spam);
        form.appearance = self.appearance.unwrap_or_default().over(form.appearance);
        form.notify_email = self.notify_email;
        form.unknown_fields = self.unknown_fields.unwrap_or_default();
        let mut errors = forms::check(&Settings {
            name: (!missing[0].1).then_some(&form.name),
            fields: (!missing[1].1).then_some(&form.fields),
            ..form.settings()
        });
        errors.extend(unreadable);
        errors.extend(missing.iter().filter(|(_, missing)| *missing).map(|(field, _)| {
            FieldError::new(*field, "required", format!("{field} is required unless workflowId is given"))
        }));
        if errors.is_empty() { Ok(form) } else { Err(Problem::validation(errors)) }
    }
}
