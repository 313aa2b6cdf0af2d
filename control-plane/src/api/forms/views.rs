//! Forms in responses, and the spam guard in requests.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::fields::Field;
use domain::forms::{ClosedReason, MIN_SECONDS_MAX, RATE_MAX, SpamGuard};
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
    /// Address to e-mail about each submission; null for none.
    notify_email: Option<String>,
    /// Whether the address is confirmed; until then it gets only the confirmation request. Null without an address.
    notify_email_confirmed: Option<bool>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FormStatus {
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
    /// Minimum seconds between loading and submitting the form: faster submissions come from programs. Default 2; 0
    /// disables the check.
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

pub(super) fn addresses(app: &App, id: Uuid) -> FormUrls {
    FormUrls { form_id: id, hosted_form_url: app.addresses.form(id), submit_url: app.addresses.submit(id) }
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

fn view<S>(call: &Call<S>, app: &App, form: Form, webhook_ids: Vec<Uuid>, confirmed: &[String]) -> FormView {
    let plan_limit = call.limits().submissions_per_form;
    let status = match ClosedReason::of(
        call.now,
        form.closes_at,
        form.submission_count,
        form.max_submissions,
        plan_limit,
    ) {
        None => FormStatus::Open,
        Some(ClosedReason::Closed) => FormStatus::Closed,
        Some(ClosedReason::Full) => FormStatus::Full,
    };
    FormView {
        id: form.id,
        addresses: addresses(app, form.id),
        name: form.name,
        folder_id: form.folder_id,
        status,
        fields: form.fields,
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
        notify_email_confirmed: form
            .notify_email
            .as_deref()
            .map(|addresses| confirmed.contains(&normalized(addresses))),
        notify_email: form.notify_email,
        created_at: form.created_at,
        updated_at: form.updated_at,
    }
}
