//! What a submission caused: a page entry, deliveries, a mail and automation runs.

use chrono::{DateTime, Utc};
use domain::scopes::{Action, Resource};
use schemars::JsonSchema;
use serde::Serialize;
use store::Conn;
use store::deliveries::{DeliveryFilter, list_deliveries};
use store::submissions::{SubmissionEntry, SubmissionMail, SubmissionRun, find_entry, find_mail, list_runs};
use uuid::Uuid;
use web::Problem;

use crate::api::webhooks::authorization::list_visible;
use crate::api::webhooks::deliveries::{DeliveryView, view};
use crate::call::Call;

/// Most deliveries and most runs in a response.
const MAX: i64 = 100;

/// What a submission caused, as far as the key may see it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SubmissionEffectsView {
    /// The page entry created from it; null if there is none, or for a key without `entries:read`. `entryNote` says why
    /// none was created.
    entry: Option<SubmissionEntryView>,
    /// Its deliveries to webhooks, newest first, at most 100; null for a key without `deliveries:read`.
    deliveries: Option<Vec<DeliveryView>>,
    /// The mail to the form's owner; null if the form did not notify anyone.
    mail: Option<SubmissionMailView>,
    /// The automation runs that it started and their replays, oldest first, at most 100; null for a key without
    /// `automations:read`.
    runs: Option<Vec<SubmissionRunView>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SubmissionEntryView {
    id: Uuid,
    /// The page that shows it, or showed it.
    page_id: Uuid,
    /// Whether the page was deleted, and the entry archived with it.
    is_archived: bool,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SubmissionMailView {
    /// `queued`, `sent`, `failed` if it was given up, or `skipped` if no recipient had agreed or the form's mails of the
    /// hour were used up.
    status: String,
    /// Number of attempts so far.
    attempts: i32,
    /// When the next attempt is due; null if none is.
    next_attempt_at: Option<DateTime<Utc>>,
    /// When it was sent, given up or skipped; null while queued.
    finished_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SubmissionRunView {
    /// Id of the run.
    run_id: Uuid,
    /// The automation that runs.
    automation_id: Uuid,
    /// Name of the automation.
    automation_name: String,
    /// `queued`, `running`, `waiting`, `success`, `error`, `cancelled` or `skipped`.
    status: String,
    /// Whether it repeats an earlier run with the same answers.
    is_replay: bool,
    /// When it was requested.
    created_at: DateTime<Utc>,
    /// When its first step began; null before.
    started_at: Option<DateTime<Utc>>,
    /// When it ended; null before.
    finished_at: Option<DateTime<Utc>>,
}

impl SubmissionEffectsView {
    pub(super) async fn find<S>(
        call: &Call<S>,
        conn: &mut Conn,
        submission_id: Uuid,
    ) -> Result<Self, Problem> {
        let account_id = call.account_id;
        let may_read = |resource| call.require_scope(resource, Action::Read).is_ok();
        let (mut entry, mut deliveries, mut runs) = (None, None, None);
        if may_read(Resource::Entries)
            && let Some(found) = find_entry(conn, account_id, submission_id).await?
            && is_visible(call, conn, &found).await?
        {
            entry = Some(SubmissionEntryView::from(found));
        }
        if may_read(Resource::Deliveries) {
            let webhook_ids = list_visible(call, conn).await?;
            let filter = DeliveryFilter {
                webhook_ids: webhook_ids.as_deref(),
                submission_id: Some(submission_id),
                limit: MAX,
                ..DeliveryFilter::default()
            };
            let page = list_deliveries(conn, account_id, &filter).await?;
            deliveries = Some(page.rows.into_iter().map(view).collect());
        }
        if may_read(Resource::Automations) {
            let mut found = list_runs(conn, account_id, submission_id, MAX).await?;
            let ids: Vec<Uuid> = found.iter().map(|run| run.automation_id).collect();
            let allowed = call.list_allowed(conn, Resource::Automations, &ids).await?;
            found.retain(|run| allowed.contains(&run.automation_id));
            runs = Some(found.into_iter().map(SubmissionRunView::from).collect());
        }
        let mail = find_mail(conn, account_id, submission_id).await?.map(SubmissionMailView::from);
        Ok(Self { entry, deliveries, mail, runs })
    }
}

/// Returns whether the caller may see the page of an entry, or could before the page was deleted.
async fn is_visible<S>(call: &Call<S>, conn: &mut Conn, entry: &SubmissionEntry) -> Result<bool, Problem> {
    if entry.is_archived {
        return Ok(call.check_in_folder(Resource::Pages, entry.page_id, entry.folder_id).is_ok());
    }
    Ok(!call.list_allowed(conn, Resource::Pages, &[entry.page_id]).await?.is_empty())
}

impl From<SubmissionEntry> for SubmissionEntryView {
    fn from(entry: SubmissionEntry) -> Self {
        let SubmissionEntry { id, page_id, is_archived, created_at, .. } = entry;
        Self { id, page_id, is_archived, created_at }
    }
}

impl From<SubmissionMail> for SubmissionMailView {
    fn from(mail: SubmissionMail) -> Self {
        let SubmissionMail { status, attempts, next_attempt_at, finished_at } = mail;
        Self { status, attempts, next_attempt_at, finished_at }
    }
}

impl From<SubmissionRun> for SubmissionRunView {
    fn from(run: SubmissionRun) -> Self {
        Self {
            run_id: run.id,
            automation_id: run.automation_id,
            automation_name: run.automation_name,
            status: run.status,
            is_replay: run.is_replay,
            created_at: run.created_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
        }
    }
}
