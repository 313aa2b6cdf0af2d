//! `fetch`: a request to a URL that a user gave, through the guarded client of `libs/outbound`.
//!
//! The service itself may be called on its base host, so that an automation can use the API; the depth of the run limits
//! loops. Other addresses of the service are refused, as for webhooks.

use std::time::Duration;

use automation::check::is_fetch_header;
use automation::execution::{EffectCall, EffectError, Failure};
use bytes::Bytes;
use domain::depth;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use outbound::{Error, Request};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::time::timeout;
use url::Url;

use super::answers;
use super::fetch_client::{BODY_BYTES_MAX, FetchClient};
use super::transaction::find_authority;
use crate::automations::RunContext;

/// Time for the lookup whether a host is one of our own.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum length of an `Idempotency-Key` at our own API and at most others.
const IDEMPOTENCY_KEY_MAX: usize = 255;

/// Headers in which a proxy forwards a client's address. Requests to the base host lose them, because it trusts them.
const FORWARDING: [&str; 6] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-real-ip",
];

/// The request of a step.
pub(super) struct Fetch<'a> {
    pub(super) method: &'static str,
    pub(super) url: &'a str,
    pub(super) headers: &'a Map<String, Value>,
    pub(super) body: Option<&'a Value>,
}

/// Sends the request, if the run is still this worker's. A status from 400 on is a failure.
pub(super) async fn send(
    context: &RunContext,
    call: &EffectCall,
    fetch: Fetch<'_>,
) -> Result<Value, EffectError> {
    // A cancelled run, or one of a suspended account, sends nothing more.
    let held = find_authority(context).await;
    held.map_err(|abort| abort.into_final(call, true).unwrap_or(EffectError::Lost))?;
    send_with(&context.state.fetch_client, context, call, fetch).await
}

/// As [`send`], with this client.
pub(super) async fn send_with(
    client: &FetchClient,
    context: &RunContext,
    call: &EffectCall,
    fetch: Fetch<'_>,
) -> Result<Value, EffectError> {
    let url = Url::parse(fetch.url).map_err(|_| Failure::permanent("url: it is not a URL with a host"))?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let is_base = url.origin() == client.base;
    if !is_base {
        let is_own = context.state.own_addresses.serve(fetch.url, context.state.clock.now());
        // The header limits a loop even if a domain can't be looked up.
        if let Ok(Ok(true)) = timeout(LOOKUP_TIMEOUT, is_own).await {
            let message = format!(
                "{host}: this service itself serves the address, so that automations could call each other without end; \
                 call the API at the base address instead"
            );
            return Err(Failure::permanent(message).into());
        }
    }
    let headers = headers(context, call, &fetch, is_base)?;
    let request = Request {
        method: Method::from_bytes(fetch.method.as_bytes()).unwrap_or_default(),
        url: fetch.url.to_owned(),
        headers,
        body: body(fetch.body),
        timeout: Some(call.timeout),
        whole_body: true,
    };
    let response = client.client.send(request).await.map_err(|error| refusal(&host, &error))?;
    let output = answers::output(&response);
    if response.status.as_u16() < 400 {
        return Ok(output);
    }
    let is_transient = is_transient(response.status);
    let message = format!("{host} answered {}", response.status);
    Err(Failure { message, is_transient, output: Some(output) }.into())
}

/// The host is named, and neither the path nor the query, which may be secrets.
fn refusal(host: &str, error: &Error) -> Failure {
    match error {
        Error::TooLarge => {
            Failure::permanent(format!("{host}: the answer has more than {} MB", BODY_BYTES_MAX >> 20))
        }
        Error::RefusedTarget { .. } => Failure::permanent(format!("{host}: {error}")),
        Error::Dns | Error::Connect { .. } | Error::Tls { .. } | Error::Timeout | Error::Protocol { .. } => {
            Failure::transient(format!("{host}: {error}"))
        }
    }
}

fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 425 | 429) || status.is_server_error()
}

fn headers(
    context: &RunContext,
    call: &EffectCall,
    fetch: &Fetch<'_>,
    is_base: bool,
) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    if let Some(content_type) = fetch.body.map(content_type) {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    for (name, value) in fetch.headers {
        if !is_fetch_header(name) {
            return Err(Failure::permanent(format!("headers.{name}: a step can't set this header")));
        }
        let name_of = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_str(value.as_str().unwrap_or_default());
        let (Ok(name_of), Ok(value)) = (name_of, value) else {
            let message = format!("headers.{name}: the value has characters that a header can't have");
            return Err(Failure::permanent(message));
        };
        headers.insert(name_of, value);
    }
    if is_base {
        for name in FORWARDING {
            headers.remove(name);
        }
    }
    let depth = depth::of_deliveries(context.depth);
    headers.insert(depth::HEADER, HeaderValue::from(depth));
    let traceparent = context.traceparent.as_deref().and_then(|value| HeaderValue::from_str(value).ok());
    if let Some(traceparent) = traceparent {
        headers.insert("traceparent", traceparent);
    }
    if let Ok(key) = HeaderValue::from_str(&idempotency_key(context, call)) {
        headers.insert("idempotency-key", key);
    }
    Ok(headers)
}

/// The same in every attempt. A path that is too long for a key is replaced by its digest.
fn idempotency_key(context: &RunContext, call: &EffectCall) -> String {
    let run_id = context.claim.run_id;
    let key = format!("{run_id}-{}", call.path);
    if key.len() <= IDEMPOTENCY_KEY_MAX {
        return key;
    }
    format!("{run_id}-{}", hex::encode(Sha256::digest(call.path.as_bytes())))
}

/// A text is sent as it is, everything else as JSON.
fn body(body: Option<&Value>) -> Bytes {
    match body {
        None => Bytes::new(),
        Some(Value::String(text)) => text.clone().into(),
        Some(value) => value.to_string().into(),
    }
}

/// The type of a body without a `Content-Type`: a text that is JSON is meant as JSON.
fn content_type(body: &Value) -> &'static str {
    match body {
        Value::String(text) => {
            let begins_as_json = text.trim_start().starts_with(['{', '[']);
            if begins_as_json && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
                "application/json"
            } else {
                "text/plain; charset=utf-8"
            }
        }
        _ => "application/json",
    }
}
