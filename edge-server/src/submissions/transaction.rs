//! Stores a submission in its own transaction: one with further effects, or for a form with limits.

use chrono::{DateTime, Utc};
use contract::Signal;
use domain::FieldError;
use domain::confirmation::is_enough;
use domain::fields::FieldType;
use domain::honeypot;
use domain::submissions::SPAM_FILES_BYTES_MAX;
use store::forms::OpenForm;
use store::submissions::{NewSubmission, SubmissionOutcome, WriteContext, insert_submission};
use tokio::time::timeout_at;
use uuid::Uuid;
use web::Problem;

use super::admission::EditPermit;
use super::deadline::Deadline;
use super::idempotency::{IdempotentCall, Receipt};
use super::spam::flag;
use super::submitted_body::{ClientKind, SubmittedBody};
use crate::forms::challenges;
use crate::state::EdgeState;
use crate::uploads::form_files::binding;

/// The result of one attempt to store a submission. Unless it is `Suspected`, or `Finished` with a stored submission, nothing
/// is stored.
pub(super) enum Attempt {
    Finished(SubmissionOutcome, Receipt),
    /// An earlier call with the same idempotency key was stored.
    Replayed(Receipt),
    /// Stored as spam; its visitor may confirm it.
    Suspected(Uuid),
    Invalid(Vec<FieldError>),
}

/// The parameters of a transaction that stores a submission.
pub(super) struct StoreSubmission<'a> {
    pub(super) state: &'a EdgeState,
    pub(super) open: &'a OpenForm,
    pub(super) body: &'a SubmittedBody,
    pub(super) client: ClientKind,
    pub(super) call: Option<&'a IdempotentCall>,
    pub(super) permit: Option<&'a EditPermit<'a>>,
    pub(super) now: DateTime<Utc>,
    /// Whether a group commit skipped the submission.
    pub(super) was_skipped: bool,
    pub(super) deadline: Deadline,
    pub(super) depth: i16,
}

impl StoreSubmission<'_> {
    /// Stores the submission with all its effects.
    ///
    /// # Errors
    /// Postgres is unavailable or does not respond, the account has no storage left for the files, or the idempotency key
    /// was used for another submission.
    pub(super) async fn store(&self, new: NewSubmission, receipt: Receipt) -> Result<Attempt, Problem> {
        let deadline = self.deadline;
        if deadline.has_passed() {
            return Err(Problem::nothing_changed());
        }
        let _permit = match self.contended_id(&new) {
            Some(id) => Some(deadline.bound(self.state.admission.transaction_permit(id)).await?),
            None => None,
        };
        let acquire = async { Ok(store::acquire_cancel_safe(self.state.db.pool()).await?) };
        let mut conn = deadline.bound(acquire).await?;
        let mut is_committing = false;
        let run = self.run(&mut conn, new, receipt, &mut is_committing);
        match timeout_at(deadline.instant(), run).await {
            Ok(done) => {
                conn.release();
                done
            }
            Err(_elapsed) => {
                tracing::warn!(
                    is_committing,
                    "storing a submission timed out: postgres does not respond, or holds locks"
                );
                Err(if is_committing { Problem::outcome_unknown() } else { Problem::nothing_changed() })
            }
        }
    }

    /// Runs the transaction. Once `is_committing` is set, it may be committed even if no response arrives.
    async fn run(
        &self,
        conn: &mut store::Conn,
        new: NewSubmission,
        receipt: Receipt,
        is_committing: &mut bool,
    ) -> Result<Attempt, Problem> {
        let mut tx = store::begin_with_timeout(conn, self.state.db.timeout()).await?;
        match self.run_in(&mut tx, new, receipt).await {
            Ok(Attempt::Finished(SubmissionOutcome::Stored(signals), receipt)) => {
                *is_committing = true;
                store::commit(tx).await.map_err(Problem::commit_failed)?;
                if !signals.is_empty() {
                    if webhook_count(&signals) > self.open.listeners {
                        // The form has more webhooks than the cache knows. Reloaded, it may use group commits again.
                        self.state.forms.remove(self.open.form.id);
                    }
                    tokio::spawn(publish(self.state.clone(), signals));
                }
                Ok(Attempt::Finished(SubmissionOutcome::Stored(Vec::new()), receipt))
            }
            Ok(Attempt::Suspected(id)) => {
                *is_committing = true;
                store::commit(tx).await.map_err(Problem::commit_failed)?;
                Ok(Attempt::Suspected(id))
            }
            not_stored => {
                // The rollback precedes the response, so that an immediate retry with the same key finds no lock.
                store::rollback(tx).await?;
                not_stored
            }
        }
    }

    /// Returns the id on which concurrent submissions wait for each other in Postgres, each holding a connection: the
    /// account if its storage is counted; the form if it has a counter or a unique field, if a row of it was locked,
    /// or if the submission is spam, which is counted.
    /// Other submissions do not wait, and those with an edit permit are limited already.
    fn contended_id(&self, new: &NewSubmission) -> Option<Uuid> {
        let OpenForm { account_id, plan, form, .. } = self.open;
        if self.permit.is_some() {
            return None;
        }
        if form.fields.iter().any(|field| field.kind == FieldType::File) {
            return Some(*account_id);
        }
        let is_limited = form.max_submissions.is_some() || plan.limits().submissions_per_form >= 0;
        let is_unique = form.unique_by.as_ref().is_some_and(|names| !names.is_empty());
        let is_spam = !new.spam_reasons.is_empty();
        (self.was_skipped || is_limited || is_unique || is_spam).then_some(form.id)
    }

    /// Does all work of the transaction, which must be committed only if the submission is stored.
    async fn run_in(
        &self,
        tx: &mut store::Conn,
        mut new: NewSubmission,
        receipt: Receipt,
    ) -> Result<Attempt, Problem> {
        let &Self { state, open, body, client, call, permit, now, depth, .. } = self;
        let files = match binding::submitted_files(&open.form.fields, &new.payload) {
            Ok(files) => files,
            Err(errors) => return Ok(Attempt::Invalid(errors)),
        };
        if let Some(call) = call
            && let Some(receipt) = call.lock(tx, open.account_id, body, call.stored_after(state, now)).await?
        {
            return Ok(Attempt::Replayed(receipt));
        }
        if open.form.spam.proof_of_work {
            let proof = body.field(honeypot::fields::PROOF).unwrap_or_default();
            if !challenges::redeem(state, tx, open, proof, now).await? {
                new.spam_reasons.push(flag(honeypot::reasons::PROOF));
            }
        }
        let mut file_bytes = 0;
        if !files.is_empty() {
            // Checks the file ids before locking the counters, so an invented id takes no lock.
            match binding::check_waiting(tx, open, &files).await? {
                Ok(bytes) => file_bytes = bytes,
                Err(missing) => return Ok(Attempt::Invalid(missing)),
            }
            // The lock order of all that count bytes: counters first, then the counted rows.
            store::usage::lock(tx, open.account_id).await?;
        }
        if permit.is_some() {
            store::forms::lock_form_shared(tx, open.form.id).await?;
        }
        let traceparent = service::telemetry::traceparent();
        let new_id = || state.rng.uuid_v7(now);
        let writer = WriteContext { now, traceparent: traceparent.as_deref(), depth, new_id: &new_id };
        let plan_limit = open.plan.limits().submissions_per_form;
        let outcome = insert_submission(tx, open.account_id, &open.form, &new, plan_limit, &writer).await?;
        if !matches!(outcome, SubmissionOutcome::Stored(_)) {
            return Ok(Attempt::Finished(outcome, receipt));
        }
        let is_counted = new.spam_reasons.is_empty();
        // Other files of spam stay unbound for a day, in which its visitor may confirm it, and its owner receive it.
        if is_counted || !files.is_empty() && keeps_spam_files(tx, open, &new, file_bytes).await? {
            let errors = binding::bind(tx, open, new.id, &files, is_counted).await?;
            if !errors.is_empty() {
                return Ok(Attempt::Invalid(errors));
            }
        }
        if let Some(call) = call {
            call.store(tx, open.account_id, body, &receipt, state.rng.bytes(), now).await?;
        }
        // A robot may learn that it was noticed, so that no person is thanked for answers that stay unread.
        if client == ClientKind::Browser && is_enough(&new.spam_reasons) {
            return Ok(Attempt::Suspected(new.id));
        }
        Ok(Attempt::Finished(outcome, receipt))
    }
}

/// Returns whether the files of this spam are kept with it: they fit beside the form's other spam, which they must not
/// replace, and their address keeps to its rate.
async fn keeps_spam_files(
    tx: &mut store::Conn,
    open: &OpenForm,
    new: &NewSubmission,
    file_bytes: i64,
) -> Result<bool, Problem> {
    if new.spam_reasons.iter().any(|reason| reason == honeypot::reasons::RATE) {
        return Ok(false);
    }
    let (account_id, form_id) = (open.account_id, open.form.id);
    Ok(file_bytes <= SPAM_FILES_BYTES_MAX
        && store::submissions::has_room_for_files(tx, account_id, form_id, file_bytes).await?)
}

/// Returns the number of webhooks with a delivery of the submission.
fn webhook_count(signals: &[Signal]) -> i64 {
    let count = signals.iter().find_map(|signal| match signal {
        Signal::DeliveriesDue { webhook_ids } => i64::try_from(webhook_ids.len()).ok(),
        _ => None,
    });
    count.unwrap_or_default()
}

/// Publishes signals in the background, because this takes long while Redis is unavailable.
pub(super) async fn publish(state: EdgeState, signals: Vec<Signal>) {
    for signal in signals {
        if let Err(error) = state.bus.publish(&signal).await {
            tracing::debug!(%error, "a signal is left to the next sweep of the outbox");
        }
    }
}
