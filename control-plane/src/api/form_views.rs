//! Forms as answers show them, and how their spam guard is written.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::fields::Field;
use domain::forms::{MIN_SECONDS_MAX, Shut, SpamGuard, shut};
use domain::recipients::folded;
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
pub(super) struct FormAddresses {
    form_id: Uuid,
    /// A page that shows the form.
    hosted_form_url: String,
    /// Where submissions are posted; needs no key.
    submit_url: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FormView {
    id: Uuid,
    #[serde(flatten)]
    addresses: FormAddresses,
    name: String,
    folder_id: Option<Uuid>,
    /// Whether it takes submissions.
    status: FormStatus,
    fields: Vec<Field>,
    success_message: Option<String>,
    submit_label: Option<String>,
    redirect_url: Option<String>,
    closes_at: Option<DateTime<Utc>>,
    max_submissions: Option<i64>,
    submission_count: i64,
    unique_by: Option<Vec<String>>,
    public_results: bool,
    /// The webhooks that are linked to it; those told of every form are not among them.
    webhook_ids: Vec<Uuid>,
    auto_entry_page_id: Option<Uuid>,
    spam: SpamGuard,
    notify_email: Option<String>,
    /// Whether that address has agreed; until then it is mailed nothing but the question. Null where nobody is named.
    notify_email_confirmed: Option<bool>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FormStatus {
    /// It does.
    Open,
    /// `closesAt` has passed.
    Closed,
    /// `maxSubmissions`, or what the plan allows a form, is reached.
    Full,
}

/// A spam guard as it is written: what is left out stays as it is.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GivenSpamGuard {
    /// A field that people don't see must stay empty; true unless told otherwise.
    honeypot: Option<bool>,
    /// Who is done sooner is no person; 2 unless told otherwise, 0 for no matter how soon.
    #[serde(default, deserialize_with = "web::whole_number_or_null")]
    #[schemars(range(min = 0, max = MIN_SECONDS_MAX))]
    min_seconds: Option<i64>,
    /// The visitor's browser has to work for a second, which needs JavaScript; false unless told otherwise.
    proof_of_work: Option<bool>,
}

impl GivenSpamGuard {
    /// The guard as it is to be.
    pub(super) fn over(&self, guard: SpamGuard) -> SpamGuard {
        // What is no such number of seconds is refused with the form.
        let seconds = self.min_seconds.map(|seconds| i32::try_from(seconds).unwrap_or(i32::MAX));
        SpamGuard {
            honeypot: self.honeypot.unwrap_or(guard.honeypot),
            min_seconds: seconds.unwrap_or(guard.min_seconds),
            proof_of_work: self.proof_of_work.unwrap_or(guard.proof_of_work),
        }
    }
}

pub(super) fn addresses(app: &App, id: Uuid) -> FormAddresses {
    FormAddresses {
        form_id: id,
        hosted_form_url: app.addresses.form(id),
        submit_url: app.addresses.submit(id),
    }
}

/// Forms as their owner sees them, with those of their webhooks that the caller may touch.
///
/// # Errors
/// The database's.
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
    let told: Vec<String> =
        forms.iter().filter_map(|form| form.notify_email.as_deref().map(folded)).collect();
    let confirmed = match told.as_slice() {
        [] => Vec::new(),
        told => list_confirmed(conn, call.account_id, told).await?,
    };
    let views = forms.into_iter().map(|form| {
        let webhook_ids = links.remove(&form.id).unwrap_or_default();
        view(call, app, form, webhook_ids, &confirmed)
    });
    Ok(views.collect())
}

fn view<S>(call: &Call<S>, app: &App, form: Form, webhook_ids: Vec<Uuid>, confirmed: &[String]) -> FormView {
    let plan_limit = call.limits().submissions_per_form;
    let status = match shut(call.now, form.closes_at, form.submission_count, form.max_submissions, plan_limit)
    {
        None => FormStatus::Open,
        Some(Shut::Closed) => FormStatus::Closed,
        Some(Shut::Full) => FormStatus::Full,
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
        notify_email_confirmed: form.notify_email.as_deref().map(|told| confirmed.contains(&folded(told))),
        notify_email: form.notify_email,
        created_at: form.created_at,
        updated_at: form.updated_at,
    }
}
