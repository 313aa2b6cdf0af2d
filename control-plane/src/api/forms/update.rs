//! Updates forms: changes the given settings, and validates the form that results.

use std::collections::BTreeSet;

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::appearance::Appearance;
use domain::fields::{Field, FieldType, MAX_FIELDS};
use domain::forms::{Settings, SpamGuard, UnknownFields};
use domain::scopes::Resource;
use domain::{FieldError, forms, timestamps};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use store::forms::{Form, lock_form, update_form};
use store::submissions::update_unique_digests;
use uuid::Uuid;
use web::{Json, Path, Problem, Reply};

use super::views::{AppearanceInput, FormView, SpamGuardInput, views};
use super::{closes_at, mappings};
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
    /// The form closes at this time: an instant such as `2030-01-31T18:00:00Z`, or a time or a day in the time zone of the
    /// account, `2030-01-31T18:00` or `2030-01-31`, which means the start of the day. A later time or null opens it again.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", regex(pattern = timestamps::PATTERN), extend("format" = "day-or-time"))]
    closes_at: Option<Option<String>>,
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
    /// Logo, colour and corners of hosted and embedded forms; settings left out stay.
    appearance: Option<AppearanceInput>,
    /// Address to e-mail about each submission: the owner's verified address, or, for a claimed account, one that confirms
    /// the link it is sent. Null for none.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = 254), extend("format" = "email"))]
    notify_email: Option<Option<String>>,
    /// What to do with answers to fields that the form does not have.
    unknown_fields: Option<UnknownFields>,
    /// The `updatedAt` of an earlier response: if the form has changed since, the update is rejected.
    if_unmodified_since: Option<DateTime<Utc>>,
}

pub(super) async fn update(
    call: Call<scope::FormsUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(request): Json<UpdateFormRequest>,
) -> Result<Reply<FormView>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    let closes_at = request.closes_at.as_ref().and_then(Option::as_deref);
    let closes_at = closes_at::parse(&mut tx, call.account_id, closes_at).await?;
    let appearance = request.appearance.clone().unwrap_or_default().over(Appearance::default());
    let settings = request.settings(closes_at.as_ref().ok().copied().flatten(), &appearance);
    check(&settings, closes_at.as_ref().err())?;
    let closes_at = request.closes_at.is_some().then(|| closes_at.unwrap_or_default());
    call.check_id(&mut tx, Resource::Forms, id).await?;
    if let Some(folder_id) = request.folder_id {
        call.check_move(&mut tx, folder_id).await?;
    }
    if let Some(asset_id) =
        request.appearance.as_ref().and_then(|appearance| appearance.logo_asset_id).flatten()
    {
        call.check_logo(&mut tx, asset_id).await?;
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
    if request.if_unmodified_since.is_some_and(|since| since < form.updated_at) {
        return Err(web::stale("form", json!(form.updated_at)));
    }
    let rule = comparison(&form);
    let webhook_ids = request.webhook_ids.clone();
    let names = field_names(&form);
    request.apply_to(&mut form, closes_at);
    check(&form.settings(), None)?;
    update_form(&mut tx, call.account_id, &form, call.now).await?;
    if rule != comparison(&form) {
        update_unique_digests(&mut tx, call.account_id, &form).await?;
    }
    if let Some(webhook_ids) = &webhook_ids {
        call.relink(&mut tx, id, webhook_ids).await?;
    }
    // A form that was in conflict already can be edited otherwise.
    let has_new_fields = names != field_names(&form);
    if has_new_fields || webhook_ids.is_some() {
        mappings::check(&mut tx, call.account_id, id, has_new_fields).await?;
    }
    let form = store::forms::find_form(&mut tx, call.account_id, id).await?;
    let view = views(&call, &app, &mut tx, form.into_iter().collect()).await?.pop();
    let view = view.ok_or_else(|| Problem::not_found("form"))?;
    call.commit(&app, tx, vec![Change::Form { form_id: id }]).await?;
    Ok(call.reply(view))
}

fn check(settings: &Settings<'_>, other: Option<&FieldError>) -> Result<(), Problem> {
    let mut errors = forms::check(settings);
    errors.extend(other.cloned());
    if errors.is_empty() { Ok(()) } else { Err(Problem::validation(errors)) }
}

fn field_names(form: &Form) -> BTreeSet<String> {
    form.fields.iter().map(|field| field.name.clone()).collect()
}

/// The fields by which submissions are compared, with their types, which decide how answers are normalized.
fn comparison(form: &Form) -> Vec<(String, Option<FieldType>)> {
    let kind = |name: &str| form.fields.iter().find(|field| field.name == name).map(|field| field.kind);
    let names = form.unique_by.iter().flatten();
    names.map(|name| (name.clone(), kind(name))).collect()
}

impl UpdateFormRequest {
    /// The settings in this request alone.
    fn settings<'a>(&'a self, closes_at: Option<DateTime<Utc>>, appearance: &'a Appearance) -> Settings<'a> {
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
            closes_at,
            max_submissions: self.max_submissions.flatten(),
            unique_by: self.unique_by.as_ref().and_then(Option::as_deref),
            spam: self.spam.as_ref().map_or(spam, |input| input.over(spam)),
            appearance: Some(appearance),
            notify_email: text(self.notify_email.as_ref()),
        }
    }

    fn apply_to(self, form: &mut Form, closes_at: Option<Option<DateTime<Utc>>>) {
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
        set(closes_at, &mut form.closes_at);
        set(self.max_submissions, &mut form.max_submissions);
        set(self.unique_by, &mut form.unique_by);
        set(self.public_results, &mut form.public_results);
        set(self.folder_id, &mut form.folder_id);
        set(self.auto_entry_page_id, &mut form.auto_entry_page_id);
        set(self.notify_email, &mut form.notify_email);
        set(self.unknown_fields, &mut form.unknown_fields);
        form.spam = self.spam.unwrap_or_default().over(form.spam);
        form.appearance = self.appearance.unwrap_or_default().over(std::mem::take(&mut form.appearance));
    }
}
