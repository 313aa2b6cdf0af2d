//! Flags submissions of robots by the traps on the edge's own pages.

use chrono::{DateTime, Utc};
use domain::honeypot;
use store::forms::OpenForm;

use super::submitted_body::SubmittedBody;
use crate::metrics;
use crate::state::EdgeState;

/// Returns why a submission is spam. API clients and other pages' forms have no traps, so they are never flagged here.
pub(super) fn spam_reasons(
    state: &EdgeState,
    open: &OpenForm,
    body: &SubmittedBody,
    now: DateTime<Utc>,
) -> Vec<String> {
    let guard = &open.form.spam;
    let honeypot = body.field(honeypot::fields::HONEYPOT).filter(|_| guard.honeypot);
    let fields = (body.field(honeypot::fields::TOKEN), honeypot);
    let min_seconds = i64::from(guard.min_seconds);
    let reasons = honeypot::spam_signals(state.form_renderer.key(), open.form.id, fields, min_seconds, now);
    reasons.into_iter().map(flag).collect()
}

/// Counts a flagged submission and returns the reason to store.
pub(super) fn flag(reason: &'static str) -> String {
    metrics::SUBMISSIONS_FLAGGED.add(1, &[("reason", reason)]);
    reason.to_owned()
}
