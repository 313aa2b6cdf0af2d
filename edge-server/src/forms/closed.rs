//! Whether a form accepts submissions, and the problem if it does not.

use chrono::{DateTime, Utc};
use domain::forms::ClosedReason;
use store::forms::OpenForm;
use web::{Code, Problem};

/// Returns why a form accepts no submissions, as far as the cached form tells.
pub(crate) fn closed_reason(open: &OpenForm, now: DateTime<Utc>) -> Option<ClosedReason> {
    let form = &open.form;
    let plan_limit = open.plan.limits().submissions_per_form;
    ClosedReason::of(now, form.closes_at, form.submission_count, form.max_submissions, plan_limit)
}

/// Returns the problem for API clients.
pub(crate) fn problem(reason: ClosedReason) -> Problem {
    match reason {
        ClosedReason::Closed => Problem::new(Code::FormClosed, "This form is closed."),
        ClosedReason::Full => Problem::new(Code::FormFull, "This form takes no more answers."),
    }
}
