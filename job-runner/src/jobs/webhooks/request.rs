//! The signed request of an attempt.

use anyhow::Context;
use domain::chat;
use domain::webhooks::{self, Template};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use store::deliveries::Attempt;

use crate::Runner;

/// The request; what can't be opened or written is an error that says nothing of the address or the secret.
pub(super) fn write(runner: &Runner, attempt: &Attempt) -> anyhow::Result<outbound::Request> {
    let open = |purpose: &str, sealed: &[u8]| -> anyhow::Result<String> {
        Ok(String::from_utf8(runner.master_key.open(purpose, sealed)?)?)
    };
    let template = template(attempt).context("a template this version does not know")?;
    let url = chat::address(template, open(webhooks::URL_PURPOSE, &attempt.sealed_url)?);
    // The newest first, as the standard has it.
    let mut secrets = vec![open(webhooks::SECRET_PURPOSE, &attempt.sealed_secret)?];
    if let Some(previous) = &attempt.sealed_previous_secret {
        secrets.push(open(webhooks::SECRET_PURPOSE, previous)?);
    }
    let id = attempt.delivery_id.to_string();
    let timestamp = runner.clock.now().timestamp();
    let body = body(template, attempt).context("the event can't be written")?;
    let signature = webhooks::sign(&secrets, &id, timestamp, &body);
    anyhow::ensure!(!signature.is_empty(), "the signing secret is none");
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("webhook-id", HeaderValue::from_str(&id)?);
    headers.insert("webhook-timestamp", HeaderValue::from(timestamp));
    headers.insert("webhook-signature", HeaderValue::from_str(&signature)?);
    Ok(outbound::Request::post(url, headers, body.into()))
}

/// For whom it is written.
pub(super) fn template(attempt: &Attempt) -> Option<Template> {
    Template::parse(&attempt.template)
}

/// The event as this webhook is told it.
fn body(template: Template, attempt: &Attempt) -> serde_json::Result<Vec<u8>> {
    let mapping = attempt.field_mapping.as_ref().and_then(Value::as_object);
    if let Some(message) =
        chat::body(template, &attempt.payload, mapping, attempt.telegram_chat_id.as_deref())
    {
        return serde_json::to_vec(&message);
    }
    let mut payload = attempt.payload.clone();
    if let Some(Value::Object(fields)) = payload.pointer_mut("/data/fields") {
        *fields = webhooks::map_fields(fields, mapping);
    }
    serde_json::to_vec(&payload)
}
