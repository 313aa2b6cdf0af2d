//! Editing forms: whatever is given is changed, and what comes of it must be a form.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::fields::{Field, FieldType, MAX_FIELDS};
use domain::forms::{Settings, SpamGuard};
use domain::scopes::Resource;
use domain::{forms, instants};
use schemars::JsonSchema;
use serde::Deserialize;
use store::forms::{Form, lock_form, update_form};
use store::submissions::rewrite_digests;
use uuid::Uuid;
use web::{Json, Path, Problem, Reply};

use super::form_views::{FormView, GivenSpamGuard, views};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EditedForm {
    #[schemars(length(min = 1, max = forms::NAME_CHARS_MAX))]
    name: Option<String>,
    /// All its fields; those left out are no more, and their answers stay in submissions there are.
    #[schemars(length(min = 1, max = MAX_FIELDS))]
    fields: Option<Vec<Field>>,
    /// Shown after a submission; null for our own words.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = forms::SUCCESS_MESSAGE_CHARS_MAX))]
    success_message: Option<Option<String>>,
    /// On the button; null for our own word.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = forms::SUBMIT_LABEL_CHARS_MAX))]
    submit_label: Option<Option<String>>,
    /// Where a browser goes after a submission; null for a page of ours.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = forms::REDIRECT_URL_CHARS_MAX), extend("format" = "uri"))]
    redirect_url: Option<Option<String>>,
    /// After this the form is closed; a later time, or null, opens it again.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<DateTime<Utc>>", regex(pattern = instants::PATTERN))]
    closes_at: Option<Option<DateTime<Utc>>>,
    /// Null takes the limit away.
    #[serde(default, deserialize_with = "web::present_whole_number")]
    #[schemars(with = "Option<i64>", range(min = 1, max = forms::MAX_SUBMISSIONS_MAX))]
    max_submissions: Option<Option<i64>>,
    /// No two submissions agree on all of these fields from now on; those that do stay. Null for no such rule.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<Vec<String>>", length(max = forms::UNIQUE_BY_MAX))]
    unique_by: Option<Option<Vec<String>>>,
    /// Whether anybody may see its results.
    public_results: Option<bool>,
    /// Exactly the webhooks to be told of its submissions, beside those told of every form. RequiredScope `webhooks:update`.
    webhook_ids: Option<Vec<Uuid>>,
    /// Null takes it out of its folder.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<Uuid>")]
    folder_id: Option<Option<Uuid>>,
    /// The page that gets an entry of each submission; null for none. RequiredScope `entries:create`.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<Uuid>")]
    auto_entry_page_id: Option<Option<Uuid>>,
    /// How hosted and embedded forms keep programs out; what is left out stays.
    spam: Option<GivenSpamGuard>,
    /// Who is mailed of each submission, your own verified address or one that has agreed by the link it is mailed;
    /// null for nobody.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = 254), extend("format" = "email"))]
    notify_email: Option<Option<String>>,
}

pub(super) async fn update(
    call: Call<scope::FormsUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(edited): Json<EditedForm>,
) -> Result<Reply<FormView>, Problem> {
    check(&edited.settings())?;
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Forms, id).await?;
    if let Some(wanted) = edited.folder_id {
        call.check_move(&mut tx, wanted).await?;
    }
    if let Some(Some(page_id)) = edited.auto_entry_page_id {
        call.check_entry_page(&mut tx, page_id).await?;
    }
    if let Some(Some(address)) = &edited.notify_email {
        call.ask_recipient(&app, &mut tx, address).await?;
    }
    // From here on the form's submissions wait.
    let form = lock_form(&mut tx, call.account_id, id).await?;
    let mut form = form.ok_or_else(|| Problem::not_found("form"))?;
    let rule = compared(&form);
    let webhook_ids = edited.webhook_ids.clone();
    edited.write_to(&mut form);
    check(&form.settings())?;
    update_form(&mut tx, call.account_id, &form, call.now).await?;
    if rule != compared(&form) {
        rewrite_digests(&mut tx, call.account_id, &form).await?;
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
    let complaints = forms::check(settings);
    if complaints.is_empty() { Ok(()) } else { Err(Problem::validation(complaints)) }
}

/// What two submissions are compared by: the fields, and how answers to them are read.
fn compared(form: &Form) -> Vec<(String, Option<FieldType>)> {
    let kind = |name: &str| form.fields.iter().find(|field| field.name == name).map(|field| field.kind);
    let names = form.unique_by.iter().flatten();
    names.map(|name| (name.clone(), kind(name))).collect()
}

impl EditedForm {
    /// What is given, for itself.
    fn settings(&self) -> Settings<'_> {
        fn text(wanted: Option<&Option<String>>) -> Option<&str> {
            wanted?.as_deref()
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
            spam: self.spam.as_ref().map_or(spam, |given| given.over(spam)),
            notify_email: text(self.notify_email.as_ref()),
        }
    }

    fn write_to(self, form: &mut Form) {
        fn put<T>(wanted: Option<T>, place: &mut T) {
            if let Some(wanted) = wanted {
                *place = wanted;
            }
        }
        put(self.name, &mut form.name);
        put(self.fields, &mut form.fields);
        put(self.success_message, &mut form.success_message);
        put(self.submit_label, &mut form.submit_label);
        put(self.redirect_url, &mut form.redirect_url);
        put(self.closes_at, &mut form.closes_at);
        put(self.max_submissions, &mut form.max_submissions);
        put(self.unique_by, &mut form.unique_by);
        put(self.public_results, &mut form.public_results);
        put(self.folder_id, &mut form.folder_id);
        put(self.auto_entry_page_id, &mut form.auto_entry_page_id);
        put(self.notify_email, &mut form.notify_email);
        form.spam = self.spam.unwrap_or_default().over(form.spam);
    }
}
