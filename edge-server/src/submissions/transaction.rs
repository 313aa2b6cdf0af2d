//! A submission of which more follows than its row, or whose form has a limit: a transaction of its own.

use std::time::Duration;

use chrono::{DateTime, Utc};
use contract::Signal;
use domain::fields::FieldType;
use domain::honeypot;
use store::forms::OpenForm;
use store::submissions::{NewSubmission, SubmissionOutcome, WriteContext, insert_submission};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;
use web::Problem;

use super::admission::EditPermit;
use super::body::Sent;
use super::handler::{Outcome, receipt, suspect};
use super::idempotency::Call;
use crate::forms::challenges;
use crate::state::EdgeState;
use crate::uploads::form_files::storage as form_files;

/// What a submission is stored with.
pub(super) struct StoreSubmission<'a> {
    pub(super) edge: &'a EdgeState,
    pub(super) open: &'a OpenForm,
    pub(super) sent: &'a Sent,
    pub(super) call: Option<&'a Call>,
    pub(super) turn: Option<&'a EditPermit<'a>>,
    pub(super) now: DateTime<Utc>,
    /// It was not stored together with others.
    pub(super) is_left_out: bool,
}

impl StoreSubmission<'_> {
    /// Stores it with all that follows; or says why not, and then nothing has happened.
    ///
    /// # Errors
    /// A problem: Postgres is away or falls silent, the account has no room for its files, its `Idempotency-Key` was
    /// another's.
    pub(super) async fn take(&self, new: NewSubmission) -> Result<Outcome, Problem> {
        let _turn = match self.waits_for() {
            Some(id) => Some(self.edge.form_lines.counted(id).await?),
            None => None,
        };
        let patience = self.edge.patience();
        let by = Instant::now() + patience;
        let conn = timeout_at(by, store::acquire_cancel_safe(&self.edge.db)).await;
        let mut conn = conn.map_err(|_elapsed| Problem::nothing_changed())??;
        let mut is_committing = false;
        match timeout_at(by, self.carry_out(&mut conn, patience, new, &mut is_committing)).await {
            Ok(done) => {
                conn.release();
                done
            }
            Err(_elapsed) => {
                tracing::warn!(
                    is_committing,
                    "a submission was given up: postgres is silent, or makes it wait"
                );
                Err(if is_committing { Problem::outcome_unknown() } else { Problem::nothing_changed() })
            }
        }
    }

    /// All of it; from when `is_committing` is set it may have happened, though this is never heard of.
    async fn carry_out(
        &self,
        conn: &mut store::Conn,
        patience: Duration,
        new: NewSubmission,
        is_committing: &mut bool,
    ) -> Result<Outcome, Problem> {
        let mut tx = store::begin_with_timeout(conn, patience).await?;
        match self.take_within(&mut tx, new).await {
            Ok((outcome @ Outcome::Stored(_), signals)) => {
                *is_committing = true;
                store::commit(tx).await.map_err(Problem::commit_failed)?;
                if !signals.is_empty() {
                    if listeners(&signals) > self.open.listeners {
                        // It has more webhooks by now: the next one may go together with others again.
                        self.edge.forms.forget(self.open.form.id);
                    }
                    tokio::spawn(tell(self.edge.clone(), signals));
                }
                Ok(outcome)
            }
            not_stored => {
                // Before the answer: whoever sends it again at once, under the same key, finds nobody at it.
                store::rollback(tx).await?;
                not_stored.map(|(outcome, _)| outcome)
            }
        }
    }

    /// Whose submissions this one waits for in Postgres, with a connection in hand: the account's where its bytes are
    /// counted; the form's for a counter, for a value nobody else may have, or where something of the form isn't free.
    /// The others are as many at a time as come, and those who wait for an edit are few as it is.
    fn waits_for(&self) -> Option<Uuid> {
        let OpenForm { account_id, plan, form, .. } = self.open;
        if self.turn.is_some() {
            return None;
        }
        if form.fields.iter().any(|field| field.kind == FieldType::File) {
            return Some(*account_id);
        }
        let is_limited = form.max_submissions.is_some() || plan.limits().submissions_per_form >= 0;
        let is_unique = form.unique_by.as_ref().is_some_and(|names| !names.is_empty());
        (self.is_left_out || is_limited || is_unique).then_some(form.id)
    }

    /// All of it, in a transaction that is committed if it is [`Outcome::Stored`]. Gives what may be told then.
    async fn take_within(
        &self,
        tx: &mut store::Conn,
        mut new: NewSubmission,
    ) -> Result<(Outcome, Vec<Signal>), Problem> {
        let not = |outcome| Ok((outcome, Vec::new()));
        let &Self { edge, open, sent, call, turn, now, .. } = self;
        let files = match form_files::handed_in(&open.form.fields, &new.payload) {
            Ok(files) => files,
            Err(wrong) => return not(Outcome::Wrong(wrong)),
        };
        if let Some(call) = call
            && let Some(receipt) =
                call.look(tx, open.account_id, sent, call.answered_after(edge, now)).await?
        {
            return not(Outcome::Again(receipt));
        }
        if open.form.spam.proof_of_work {
            let proof = sent.said(honeypot::fields::PROOF).unwrap_or_default();
            if !challenges::spend(edge, tx, open, proof, now).await? {
                new.spam_reasons.push(suspect(honeypot::reasons::PROOF));
            }
        }
        if !files.is_empty() {
            // Whoever makes an id up waits for nobody, nor does anybody wait for them.
            let missing = form_files::missing(tx, open, &files).await?;
            if !missing.is_empty() {
                return not(Outcome::Wrong(missing));
            }
            // As whoever else counts bytes: the counters first, then what is counted.
            store::usage::lock(tx, open.account_id).await?;
        }
        if turn.is_some() {
            store::forms::lock_form_shared(tx, open.form.id).await?;
        }
        let traceparent = service::telemetry::traceparent();
        let new_id = || edge.rng.uuid_v7(now);
        let writer = WriteContext { now, traceparent: traceparent.as_deref(), new_id: &new_id };
        let plan_limit = open.plan.limits().submissions_per_form;
        let taken = insert_submission(tx, open.account_id, &open.form, &new, plan_limit, &writer).await?;
        let signals = match taken {
            SubmissionOutcome::Stored(signals) => signals,
            SubmissionOutcome::Refused(why) => return not(Outcome::Refused(why)),
            SubmissionOutcome::Duplicate => return not(Outcome::Duplicate),
            SubmissionOutcome::Changed => return not(Outcome::Changed),
            SubmissionOutcome::Busy => return not(Outcome::Busy),
            SubmissionOutcome::NoForm => return not(Outcome::NoForm),
        };
        let counts = new.spam_reasons.is_empty();
        let wrong = form_files::bind(tx, open, new.id, &files, counts).await?;
        if !wrong.is_empty() {
            return not(Outcome::Wrong(wrong));
        }
        let receipt = receipt(open, &new, now);
        if let Some(call) = call {
            call.keep(tx, open.account_id, sent, &receipt, edge.rng.bytes(), now).await?;
        }
        Ok((Outcome::Stored(receipt), signals))
    }
}

/// How many webhooks are told of a submission.
fn listeners(signals: &[Signal]) -> i64 {
    let told = signals.iter().find_map(|signal| match signal {
        Signal::DeliveriesDue { webhook_ids } => i64::try_from(webhook_ids.len()).ok(),
        _ => None,
    });
    told.unwrap_or_default()
}

/// Beside the answer, not before it: Redis may be away, and then this takes its time.
async fn tell(edge: EdgeState, signals: Vec<Signal>) {
    for signal in signals {
        if let Err(error) = edge.bus.publish(&signal).await {
            tracing::debug!(%error, "the outbox waits for its next sweep");
        }
    }
}
