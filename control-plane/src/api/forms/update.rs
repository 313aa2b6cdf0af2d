//! Updates forms: changes the given settings, and validates the form that results.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::fields::{Field, FieldType, MAX_FIELDS};
use domain::forms::{Settings, SpamGuard};
use domain::scopes::Resource;
use domain::{forms, timestamps};
use schemars::JsonSchema;
use serde::Deserialize;
use store::forms::{Form, lock_form, update_form};
use store::submissions::update_unique_digests;
use uuid::Uuid;
use web::{Json, Path, Problem, Reply};

use super::views::{FormView, SpamGuardInput, views};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UpdateFormRequest {
    /// Display name.
    #[schemars(length(min = 1, max = forms::NAME_CHARS_MAX))]
    name: Option<String>,
    /// All fields. Fields left out are removed; submissions keep their answers.
    #[schemars(length(min = 1, max = MAX_FIELDS))]
    fields: Option<Vec<Field>>,
    /// Message shown after a submission; null for the default message.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = forms::SUCCESS_MESSAGE_CHARS_MAX))]
    success_message: Option<Option<String>>,
    /// Label of the submit button; null for the default label.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = forms::SUBMIT_LABEL_CHARS_MAX))]
    submit_label: Option<Option<String>>,
    /// URL to which the browser is redirected after a submission; null for the default page.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = forms::REDIRECT_URL_CHARS_MAX), extend("format" = "uri"))]
    redirect_url: Option<Option<String>>,
    /// The form closes at this time; a later time or null opens it again.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<DateTime<Utc>>", regex(pattern = timestamps::PATTERN))]
    closes_at: Option<Option<DateTime<Utc>>>,
    /// Maximum number of submissions; null for no limit.
    #[serde(default, deserialize_with = "web::present_whole_number")]
    #[schemars(with = "Option<i64>", range(min = 1, max = forms::MAX_SUBMISSIONS_MAX))]
    max_submissions: Option<Option<i64>>,
    /// From now on, rejects a submission if its answers to all of these fields equal those of an earlier one; existing
    /// duplicates stay. Null removes the rule.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<Vec<String>>", length(max = forms::UNIQUE_BY_MAX))]
    unique_by: Option<Option<Vec<String>>>,
    /// Whether the results are public.
    public_results: Option<bool>,
    /// Exactly the webhooks to link to the form, beside webhooks for all forms. Requires `webhooks:update`.
    webhook_ids: Option<Vec<Uuid>>,
    /// Folder to move the form to; null removes it from its folder.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<Uuid>")]
    folder_id: Option<Option<Uuid>>,
    /// Page that gets an entry for each submission; null for none. Requires `entries:create`.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<Uuid>")]
    auto_entry_page_id: Option<Option<Uuid>>,
    /// Spam protection of hosted and embedded forms; settings left out stay.
    spam: Option<SpamGuardInput>,
    /// Address to e-mail about each submission: the owner's verified address, or, for a claimed account, one that confirms
    /// the link it is sent. Null for none.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = 254), extend("format" = "email"))]
    notify_email: Option<Option<String>>,
}

pub(super) async fn update(
    call: Call<scope::FormsUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(request): Json<UpdateFormRequest>,
) -> Result<Reply<FormView>, Problem> {
    check(&request.settings())?;
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Forms, id).await?;
    if let Some(folder_id) = request.folder_id {
        call.check_move(&mut tx, folder_id).await?;
    }
    if let Some(Some(page_id)) = request.auto_entry_page_id {
        call.check_entry_page(&mut tx, page_id).await?;
    }
    if let Some(Some(address)) = &request.notify_email {
        call.request_recipient(&app, &mut tx, address).await?;
    }
    // From here on, submissions of the form wait for this transaction.
    let form = lock_form(&mut tx, call.account_id, id).await?;
    let mut form = form.ok_or_else(|| Problem::not_found("form"))?;
    let rule = comparison(&form);
    let webhook_ids = request.webhook_ids.clone();
    request.apply_to(&mut form);
    check(&form.settings())?;
    update_form(&mut tx, call.account_id, &form, call.now).await?;
    if rule != comparison(&form) {
        update_unique_digests(&mut tx, call.account_id, &form).await?;
    }
    if let Some(webhook_ids) = webhook_ids {
        call.relink(&mut tx, id, &webhook_ids).await?;
    }
    let form = store::forms::find_form(&mut tx, call.account_id, id).await?;
    let view = views(&call, &app, &mut tx, form.into_iter().collect()).await?.pop();
    let view = view.ok_or_else(|| Problem::not_found("form"))?;
    app.commit(tx, vec![Change::Form { form_id: id }]).await?;
    Ok(call.reply(view))
}

fn check(settings: &Settings<'_>) -> Result<(), Problem> {
    let errors = forms::check(settings);
    if errors.is_empty() { Ok(()) } else { Err(Problem::validation(errors)) }
}

/// The fields by which submissions are compared, with their types, which decide how answers are normalized.
fn comparison(form: &Form) -> Vec<(String, Option<FieldType>)> {
    let kind = |name: &str| form.fields.iter().find(|field| field.name == name).map(|field| field.kind);
    let names = form.unique_by.iter().flatten();
    names.map(|name| (name.clone(), kind(name))).collect()
}

impl UpdateFormRequest {
    /// The settings in this request alone.
    fn settings(&self) -> Settings<'_> {
        fn text(new: Option<&Option<String>>) -> Option<&str> {
            new?.as_deref()
        }
        let spam = SpamGuard::default();
        Settings {
            name: self.name.as_deref(),
            fields: self.fields.as_deref(),
            success_message: text(self.success_message.as_ref()),
            submit_label: text(self.submit_label.as_ref()),
            redirect_url: text(self.redirect_url.as_ref()),
            closes_at: self.closes_at.flatten(),
            max_submissions: self.max_submissions.flatten(),
            unique_by: self.unique_by.as_ref().and_then(Option::as_deref),
            spam: self.spam.as_ref().map_or(spam, |input| input.over(spam)),
            notify_email: text(self.notify_email.as_ref()),
        }
    }

    fn apply_to(self, form: &mut Form) {
        fn set<T>(new: Option<T>, setting: &mut T) {
            if let Some(new) = new {
                *setting = new;
            }
        }
        set(self.name, &mut form.name);
        set(self.fields, &mut form.fields);
        set(self.success_message, &mut form.success_message);
        set(self.submit_label, &mut form.submit_label);
        set(self.redirect_url, &mut form.redirect_url);
        set(self.closes_at, &mut form.closes_at);
        set(self.max_submissions, &mut form.max_submissions);
        set(self.unique_by, &mut form.unique_by);
        set(self.public_results, &mut form.public_results);
        set(self.folder_id, &mut form.folder_id);
        set(self.auto_entry_page_id, &mut form.auto_entry_page_id);
        set(self.notify_email, &mut form.notify_email);
        form.spam = self.spam.unwrap_or_default().over(form.spam);
    }
}
