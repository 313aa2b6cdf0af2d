//! How an attempt ended, and what follows from it for the delivery and its webhook.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::retries;
use domain::webhooks::health::{Diagnosis, diagnose};
use domain::webhooks::verdict::{Answer, Verdict, judge};
use domain::webhooks::{PING, Template};
use http::HeaderMap;
use store::deliveries::{Attempt, Outcome};

use super::request::template;
use crate::Runner;

/// What is kept of a receiver's answer.
const KEPT_ANSWER_BYTES: usize = 16 << 10;
/// Nothing was sent, because the address, the secret or the event could not be read.
pub(super) const UNWRITABLE: &str = "unwritable";
/// Nothing was sent, because every attempt was begun before and none was ended.
pub(super) const INTERRUPTED: &str = "interrupted";
/// The receiver answered, and did not take it.
const REFUSED: &str = "http_status";

/// An attempt that has ended.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// What it shows of the webhook, to be noted once the end is written down.
    pub(crate) diagnosis: Diagnosis,
    /// The Telegram chat it must go to from now on.
    pub(super) moved_to: Option<String>,
}

/// Whether the schedule was used up before this attempt. Attempts are counted when they begin, so that one on which
/// workers die is not made for ever.
pub(super) fn is_used_up(runner: &Runner, attempt: &Attempt) -> bool {
    tries(attempt) > most_tries(runner, attempt)
}

/// What became of an answer, or of none.
pub(super) fn of(
    runner: &Runner,
    attempt: &Attempt,
    answer: Result<outbound::Response, &'static str>,
    took: Duration,
) -> Ended {
    let at = runner.clock.now();
    let (verdict, status_code, failure, response_body) = match answer {
        Ok(answer) => {
            let status = answer.status.as_u16();
            let retry_after = retry_after(&answer.headers, at);
            let read = Answer { status, retry_after, body: &answer.body };
            let verdict = judge(template(attempt).unwrap_or(Template::Default), &read);
            (verdict, Some(i32::from(status)), REFUSED, Some(kept(&answer.body)))
        }
        Err(class) => (Verdict::Retry(None), None, class, None),
    };
    let next_attempt_at = next_attempt_at(runner, attempt, &verdict, at);
    let failing_for = attempt.failing_since.map(|since| at - since);
    let patience = TimeDelta::from_std(runner.deactivate_after).unwrap_or(TimeDelta::MAX);
    let diagnosis = match diagnose(&verdict, next_attempt_at.is_none(), failing_for, patience) {
        // A test that fails is no reason for anything: its owner is looking.
        Diagnosis::Fails | Diagnosis::Ends(_) if attempt.event == PING => Diagnosis::Nothing,
        other => other,
    };
    let outcome = Outcome {
        status_code,
        duration_ms: i64::try_from(took.as_millis()).unwrap_or(i64::MAX),
        error_class: (verdict != Verdict::Delivered).then_some(failure),
        response_body,
        at,
        next_attempt_at,
    };
    let moved_to = match verdict {
        Verdict::Moved { chat_id } => Some(chat_id),
        _ => None,
    };
    Ended { outcome, diagnosis, moved_to }
}

fn next_attempt_at(
    runner: &Runner,
    attempt: &Attempt,
    verdict: &Verdict,
    at: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let next = tries(attempt);
    if next >= most_tries(runner, attempt) {
        return None;
    }
    match verdict {
        Verdict::Delivered | Verdict::GiveUp | Verdict::Gone => None,
        Verdict::Moved { .. } => Some(at),
        Verdict::Retry(after) => {
            let pause = retries::pause_before(&runner.schedule, next, runner.rng.fraction(), *after)?;
            Some(at + pause)
        }
    }
}

/// Attempts of this schedule, this one included.
fn tries(attempt: &Attempt) -> usize {
    usize::try_from(attempt.attempt - attempt.attempts_before).unwrap_or(usize::MAX)
}

/// A test that comes hours later tells nobody anything.
fn most_tries(runner: &Runner, attempt: &Attempt) -> usize {
    if attempt.event == PING { 1 } else { runner.schedule.len() }
}

/// How long the receiver asks us to wait: seconds, or a date (RFC 9110, 10.2.3).
fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let value = headers.get("retry-after")?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    at.duration_since(now.into()).ok()
}

/// The beginning of an answer as a text Postgres takes. What is no UTF-8 grows as it is replaced, so it is cut
/// once more.
fn kept(body: &[u8]) -> String {
    let beginning = &body[..body.len().min(KEPT_ANSWER_BYTES)];
    let mut text = String::from_utf8_lossy(beginning).replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(KEPT_ANSWER_BYTES));
    text
}
