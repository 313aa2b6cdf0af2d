//! The result of an attempt, and its consequences for the delivery and the webhook.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::retries;
use domain::webhooks::health::{Diagnosis, diagnose};
use domain::webhooks::{PING, ReceiverResponse, Template, Verdict, classify_response};
use http::HeaderMap;
use store::deliveries::{Attempt, AttemptOutcome, SentRequest};

use super::request::template;
use crate::state::JobState;

/// Stored length of a response body.
const MAX_STORED_BYTES: usize = 16 << 10;
/// Error class: nothing was sent, because the URL, the secret or the event could not be read.
pub(super) const UNWRITABLE: &str = "unwritable";
/// Error class: nothing was sent, because every attempt was started before and none has a result.
pub(super) const INTERRUPTED: &str = "interrupted";
/// Error class: nothing was sent, because this installation itself serves the URL. Retries would change nothing.
pub(super) const OWN_ADDRESS: &str = "own_address";
/// Error class: the receiver responded with an error status.
const REFUSED: &str = "http_status";

/// The result of an attempt.
pub(crate) struct AttemptResult {
    pub(crate) outcome: AttemptOutcome,
    /// The consequence for the webhook's health, stored after the outcome.
    pub(crate) diagnosis: Diagnosis,
    /// The new id of the Telegram chat, if it has moved.
    pub(super) moved_to: Option<String>,
}

/// Returns whether the schedule was exhausted before this attempt. Attempts are counted when they start, so a delivery
/// that kills its workers is not attempted forever.
pub(super) fn is_exhausted(state: &JobState, attempt: &Attempt) -> bool {
    attempts_so_far(attempt) > max_attempts(state, attempt)
}

/// Evaluates a response, or the error class of an attempt without one.
pub(super) fn of(
    state: &JobState,
    attempt: &Attempt,
    request: Option<SentRequest>,
    response: Result<outbound::Response, &'static str>,
    duration: Duration,
) -> AttemptResult {
    let at = state.clock.now();
    let (verdict, status_code, failure, response_body) = match response {
        Ok(response) => {
            let status = response.status.as_u16();
            let retry_after = retry_after(&response.headers, at);
            let received = ReceiverResponse { status, retry_after, body: &response.body };
            let verdict = classify_response(template(attempt).unwrap_or(Template::Default), &received);
            (verdict, Some(i32::from(status)), REFUSED, Some(stored_body(&response.body)))
        }
        Err(OWN_ADDRESS) => (Verdict::GiveUp, None, OWN_ADDRESS, None),
        Err(class) => (Verdict::Retry(None), None, class, None),
    };
    let next_attempt_at = next_attempt_at(state, attempt, &verdict, at);
    let failing_for = attempt.failing_since.map(|since| at - since);
    let deactivate_after = TimeDelta::from_std(state.deactivate_after).unwrap_or(TimeDelta::MAX);
    let diagnosis = match diagnose(&verdict, next_attempt_at.is_none(), failing_for, deactivate_after) {
        // The owner is watching a ping, so its failure has no consequences.
        Diagnosis::Fails | Diagnosis::Ends(_) if attempt.event == PING => Diagnosis::Nothing,
        other => other,
    };
    let outcome = AttemptOutcome {
        status_code,
        duration_ms: i64::try_from(duration.as_millis()).unwrap_or(i64::MAX),
        error_class: (verdict != Verdict::Delivered).then_some(failure),
        response_body,
        at,
        next_attempt_at,
        request,
    };
    let moved_to = match verdict {
        Verdict::Moved { chat_id } => Some(chat_id),
        _ => None,
    };
    AttemptResult { outcome, diagnosis, moved_to }
}

fn next_attempt_at(
    state: &JobState,
    attempt: &Attempt,
    verdict: &Verdict,
    at: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let next = attempts_so_far(attempt);
    if next >= max_attempts(state, attempt) {
        return None;
    }
    match verdict {
        Verdict::Delivered | Verdict::GiveUp | Verdict::Gone => None,
        Verdict::Moved { .. } => Some(at),
        Verdict::Retry(after) => {
            let pause = retries::delay_before(&state.retry_schedule, next, state.rng.fraction(), *after)?;
            Some(at + pause)
        }
    }
}

/// Returns the number of attempts of the current schedule, including this one.
fn attempts_so_far(attempt: &Attempt) -> usize {
    usize::try_from(attempt.attempt - attempt.attempts_before).unwrap_or(usize::MAX)
}

/// Returns one for a ping, because its result is useless hours later.
fn max_attempts(state: &JobState, attempt: &Attempt) -> usize {
    if attempt.event == PING { 1 } else { state.retry_schedule.len() }
}

/// Parses `Retry-After`: seconds or a date (RFC 9110, 10.2.3).
fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let value = headers.get("retry-after")?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    at.duration_since(now.into()).ok()
}

/// Returns the beginning of a body as text that Postgres accepts. Replacing invalid UTF-8 makes the text longer, so it is
/// truncated twice.
fn stored_body(body: &[u8]) -> String {
    let beginning = &body[..body.len().min(MAX_STORED_BYTES)];
    let mut text = String::from_utf8_lossy(beginning).replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(MAX_STORED_BYTES));
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metrics::DELIVERY_RESULTS;

    #[test]
    fn every_result_has_a_series_from_the_start() {
        let own = ["delivered", REFUSED, UNWRITABLE, INTERRUPTED, OWN_ADDRESS];
        let all: BTreeSet<&str> = own.into_iter().chain(outbound::Error::CLASSES).collect();
        assert_eq!(BTreeSet::from(DELIVERY_RESULTS), all);
    }
}
