//! Forms in responses, and the spam guard and appearance in requests.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::appearance::{ACCENT_PATTERN, Appearance, RADIUS_MAX};
use domain::fields::{Field, FieldType};
use domain::forms::{ClosedReason, MIN_SECONDS_MAX, RATE_MAX, SpamGuard, UnknownFields};
use domain::recipients::normalized;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::forms::Form;
use store::recipients::list_confirmed;
use uuid::Uuid;
use web::Problem;

use crate::App;
use crate::call::Call;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FormUrls {
    /// The form's id.
    form_id: Uuid,
    /// URL of a page that shows the form.
    hosted_form_url: String,
    /// URL to which submissions are posted; it needs no key.
    submit_url: String,
    /// HTML that shows the form in any page; with `data-mode="popup"` behind a button.
    pub(super) embed_code: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreatedForm {
    #[serde(flatten)]
    pub(super) urls: FormUrls,
    /// The instant at which the form closes; left out for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) closes_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FormView {
    id: Uuid,
    #[serde(flatten)]
    addresses: FormUrls,
    /// Display name.
    name: String,
    folder_id: Option<Uuid>,
    /// Whether the form accepts submissions.
    status: FormStatus,
    /// The questions, in order.
    fields: Vec<Field>,
    /// Message shown after a submission; null for the default.
    success_message: Option<String>,
    /// Label of the submit button; null for the default.
    submit_label: Option<String>,
    /// URL to which the browser is redirected after a submission; null for the default page.
    redirect_url: Option<String>,
    /// The form closes at this time; null for never.
    closes_at: Option<DateTime<Utc>>,
    /// Maximum number of submissions; null for no limit.
    max_submissions: Option<i64>,
    /// Number of submissions, without spam.
    submission_count: i64,
    /// Rejects a submission if its answers to all of these fields equal those of an earlier one.
    unique_by: Option<Vec<String>>,
    /// Whether the results are public.
    public_results: bool,
    /// Webhooks linked to the form, without the webhooks for all forms.
    webhook_ids: Vec<Uuid>,
    /// Page that gets an entry for each submission; null for none.
    auto_entry_page_id: Option<Uuid>,
    /// Spam protection of hosted and embedded forms.
    spam: SpamGuard,
    /// Logo, colour and corners of hosted and embedded forms.
    appearance: Appearance,
    /// Address to e-mail about each submission; null for none.
    notify_email: Option<String>,
    /// Whether the address is confirmed; until then it gets only the confirmation request. Null without an address.
    notify_email_confirmed: Option<bool>,
    /// What happens to answers to fields that the form does not have.
    unknown_fields: UnknownFields,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::api) enum FormStatus {
    /// Accepts submissions.
    Open,
    /// `closesAt` has passed.
    Closed,
    /// `maxSubmissions` or the plan's limit per form is reached.
    Full,
}

/// Settings that are left out stay unchanged.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SpamGuardInput {
    /// Requires a field that visitors don't see to stay empty; default true.
    honeypot: Option<bool>,
    /// Upper bound of the seconds that must pass between loading and submitting the form, because faster submissions come from
    /// programs: one second for each required field that is left to fill, fewer on a prefilled page. Default 2; 0 disables
    /// the check.
    #[serde(default, deserialize_with = "web::whole_number_or_null")]
    #[schemars(range(min = 0, max = MIN_SECONDS_MAX))]
    min_seconds: Option<i64>,
    /// Requires the visitor's browser to compute for about a second, which needs JavaScript; default false.
    proof_of_work: Option<bool>,
    /// Most submissions from one network address per minute; more are stored as spam with the reason `rate`. 0 for no
    /// limit, null for the limit of this service.
    #[serde(default, deserialize_with = "web::present_whole_number")]
    #[schemars(with = "Option<i64>", range(min = 0, max = RATE_MAX))]
    per_minute: Option<Option<i64>>,
    /// The same per day.
    #[serde(default, deserialize_with = "web::present_whole_number")]
    #[schemars(with = "Option<i64>", range(min = 0, max = RATE_MAX))]
    per_day: Option<Option<i64>>,
}

impl SpamGuardInput {
    /// Applies these settings to an existing guard.
    pub(super) fn over(&self, guard: SpamGuard) -> SpamGuard {
        // A number out of range is rejected when the form is validated.
        let narrow = |number: i64| i32::try_from(number).unwrap_or(i32::MAX);
        let rate = |new: Option<Option<i64>>, current| new.map_or(current, |rate| rate.map(narrow));
        SpamGuard {
            honeypot: self.honeypot.unwrap_or(guard.honeypot),
            min_seconds: self.min_seconds.map_or(guard.min_seconds, narrow),
            proof_of_work: self.proof_of_work.unwrap_or(guard.proof_of_work),
            per_minute: rate(self.per_minute, guard.per_minute),
            per_day: rate(self.per_day, guard.per_day),
        }
    }
}

/// Settings that are left out stay unchanged; null restores the default.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AppearanceInput {
    /// Image of this account, shown above the form: the id of an asset (`POST /api/pages/assets`).
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<Uuid>")]
    pub(super) logo_asset_id: Option<Option<Uuid>>,
    /// Colour of buttons, links and focus, such as `#0f766e`.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", regex(pattern = ACCENT_PATTERN))]
    accent: Option<Option<String>>,
    /// Radius of the corners of inputs and buttons, in pixels.
    #[serde(default, deserialize_with = "web::present_whole_number")]
    #[schemars(with = "Option<i64>", range(min = 0, max = RADIUS_MAX))]
    radius: Option<Option<i64>>,
}

impl AppearanceInput {
    /// Applies these settings to an existing appearance.
    pub(super) fn over(&self, current: Appearance) -> Appearance {
        // A number out of range is rejected when the form is validated.
        let narrow = |number: i64| i32::try_from(number).unwrap_or(i32::MAX);
        Appearance {
            logo_asset_id: self.logo_asset_id.unwrap_or(current.logo_asset_id),
            accent: self.accent.clone().unwrap_or(current.accent),
            radius: self.radius.map_or(current.radius, |radius| radius.map(narrow)),
        }
    }
}

pub(in crate::api) fn addresses(app: &App, id: Uuid) -> FormUrls {
    FormUrls {
        form_id: id,
        hosted_form_url: app.addresses.form(id),
        submit_url: app.addresses.submit(id),
        embed_code: app.addresses.embed_code(id),
    }
}

/// Forms as the owner sees them, with those of their webhooks that the caller may access.
pub(super) async fn views<S>(
    call: &Call<S>,
    app: &App,
    conn: &mut store::Conn,
    forms: Vec<Form>,
) -> Result<Vec<FormView>, Problem> {
    let ids: Vec<Uuid> = forms.iter().map(|form| form.id).collect();
    let mut links = BTreeMap::<Uuid, Vec<Uuid>>::new();
    for (form_id, webhook_id) in call.visible_links(conn, &ids).await? {
        links.entry(form_id).or_default().push(webhook_id);
    }
    let addresses: Vec<String> =
        forms.iter().filter_map(|form| form.notify_email.as_deref().map(normalized)).collect();
    let confirmed = match addresses.as_slice() {
        [] => Vec::new(),
        addresses => list_confirmed(conn, call.account_id, addresses).await?,
    };
    let views = forms.into_iter().map(|form| {
        let webhook_ids = links.remove(&form.id).unwrap_or_default();
        view(call, app, form, webhook_ids, &confirmed)
    });
    Ok(views.collect())
}

/// Returns whether a form accepts submissions.
pub(in crate::api) fn status_of<S>(call: &Call<S>, form: &Form) -> FormStatus {
    let plan_limit = call.limits().submissions_per_form;
    match ClosedReason::of(call.now, form.closes_at, form.submission_count, form.max_submissions, plan_limit)
    {
        None => FormStatus::Open,
        Some(ClosedReason::Closed) => FormStatus::Closed,
        Some(ClosedReason::Full) => FormStatus::Full,
    }
}

fn view<S>(call: &Call<S>, app: &App, form: Form, webhook_ids: Vec<Uuid>, confirmed: &[String]) -> FormView {
    let status = status_of(call, &form);
    FormView {
        id: form.id,
        addresses: addresses(app, form.id),
        name: form.name,
        folder_id: form.folder_id,
        status,
        fields: with_file_limits(form.fields, call.limits().asset_size_limit),
        success_message: form.success_message,
        submit_label: form.submit_label,
        redirect_url: form.redirect_url,
        closes_at: form.closes_at,
        max_submissions: form.max_submissions,
        submission_count: form.submission_count,
        unique_by: form.unique_by,
        public_results: form.public_results,
        webhook_ids,
        auto_entry_page_id: form.auto_entry_page_id,
        spam: form.spam,
        appearance: form.appearance,
        notify_email_confirmed: form
            .notify_email
            .as_deref()
            .map(|addresses| confirmed.contains(&normalized(addresses))),
        notify_email: form.notify_email,
        unknown_fields: form.unknown_fields,
        created_at: form.created_at,
        updated_at: form.updated_at,
    }
}

/// Adds what the plan allows to the file fields; their own `maxFileSize` may be more.
fn with_file_limits(mut fields: Vec<Field>, plan_bytes: i64) -> Vec<Field> {
    let plan_bytes = u64::try_from(plan_bytes).unwrap_or(u64::MAX);
    for field in fields.iter_mut().filter(|field| field.kind == FieldType::File) {
        field.effective_max_file_size =
            Some(field.max_file_size.map_or(plan_bytes, |max| max.min(plan_bytes)));
    }
    fields
}
