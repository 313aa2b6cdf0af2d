//! One attempt to tell a webhook.
//!
//! The attempt is leased in Postgres, so that two workers never send the same delivery at once; its end, and
//! when to try again, are written there too ([`crate::deliveries`]). Killed in between, the lease runs out and the
//! next attempt carries the same `webhook-id`: the receiver can tell.

use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, Utc};
use domain::{retries, webhooks};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use service::metrics;
use store::deliveries::{Attempt, Outcome};

use crate::Runner;

/// What is kept of a receiver's answer.
const KEPT_ANSWER_BYTES: usize = 16 << 10;
/// Nothing was sent, because the address, the secret or the event could not be read.
const UNWRITABLE: &str = "unwritable";
/// Nothing was sent, because every attempt was begun before and whoever made the last did not live to say how it ended.
const INTERRUPTED: &str = "interrupted";

/// Makes an attempt that has been begun; gives how it ended.
pub(crate) async fn deliver(runner: &Runner, attempt: &Attempt) -> Outcome {
    let outcome = send(runner, attempt).await;
    let result = outcome.error_class.unwrap_or("delivered");
    metrics::counter("job_runner_delivery_attempted_total").add(1, &[("result", result)]);
    tracing::info!(delivery.id = %attempt.delivery_id, attempt = attempt.attempt, result, status = outcome.status_code, "attempted");
    outcome
}

/// One attempt, which always ends in an outcome: one that didn't would be begun again after every lease,
/// counted and never written down.
#[tracing::instrument(name = "webhook attempt", skip_all, fields(delivery.id = %attempt.delivery_id, attempt = attempt.attempt))]
async fn send(runner: &Runner, attempt: &Attempt) -> Outcome {
    let started = std::time::Instant::now();
    let is_used_up = usize::try_from(attempt.attempt).is_ok_and(|attempt| attempt > runner.schedule.len());
    let answer = match request(runner, attempt) {
        // Attempts are counted when they begin, so that one on which workers die is not made for ever.
        _ if is_used_up => Err(INTERRUPTED),
        Ok(request) => runner.outbound.send(request).await.map_err(|error| error.class()),
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "a delivery can't be written; wrong master key?");
            Err(UNWRITABLE)
        }
    };
    let duration_ms = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
    let at = runner.clock.now();
    let (status_code, error_class, response_body, retry_after) = match answer {
        Ok(answer) => {
            let class = (!answer.status.is_success()).then_some("http_status");
            let retry_after = retry_after(&answer.headers, at);
            (Some(i32::from(answer.status.as_u16())), class, Some(kept(&answer.body)), retry_after)
        }
        Err(class) => (None, Some(class), None, None),
    };
    let next = usize::try_from(attempt.attempt).unwrap_or(usize::MAX);
    let pause = retries::pause_before(&runner.schedule, next, runner.rng.fraction(), retry_after);
    let next_attempt_at = error_class.and(pause).map(|pause| at + pause);
    Outcome { status_code, duration_ms, error_class, response_body, at, next_attempt_at }
}

/// The signed request of an attempt.
fn request(runner: &Runner, attempt: &Attempt) -> anyhow::Result<outbound::Request> {
    let open = |purpose: &str, sealed: &[u8]| -> anyhow::Result<String> {
        Ok(String::from_utf8(runner.master_key.open(purpose, sealed)?)?)
    };
    let url = open(webhooks::URL_PURPOSE, &attempt.sealed_url)?;
    let secret = open(webhooks::SECRET_PURPOSE, &attempt.sealed_secret)?;
    let id = attempt.delivery_id.to_string();
    let timestamp = runner.clock.now().timestamp();
    let body = body(attempt).context("the event can't be written")?;
    let signature = webhooks::sign(&[secret], &id, timestamp, &body);
    anyhow::ensure!(!signature.is_empty(), "the signing secret is none");
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("webhook-id", HeaderValue::from_str(&id)?);
    headers.insert("webhook-timestamp", HeaderValue::from(timestamp));
    headers.insert("webhook-signature", HeaderValue::from_str(&signature)?);
    Ok(outbound::Request::post(url, headers, body.into()))
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

/// The event as this webhook is told it.
fn body(attempt: &Attempt) -> serde_json::Result<Vec<u8>> {
    let mut payload = attempt.payload.clone();
    let mapping = attempt.field_mapping.as_ref().and_then(Value::as_object);
    if let Some(Value::Object(fields)) = payload.pointer_mut("/data/fields") {
        *fields = webhooks::map_fields(fields, mapping);
    }
    serde_json::to_vec(&payload)
}

/// The beginning of an answer as a text Postgres takes. What is no UTF-8 grows as it is replaced, so it is cut
/// once more.
fn kept(body: &[u8]) -> String {
    let beginning = &body[..body.len().min(KEPT_ANSWER_BYTES)];
    let mut text = String::from_utf8_lossy(beginning).replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(KEPT_ANSWER_BYTES));
    text
}
