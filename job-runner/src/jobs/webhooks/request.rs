//! Builds the signed request of an attempt.

use anyhow::Context;
use domain::chat;
use domain::webhooks::{self, Template};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use store::deliveries::Attempt;

use crate::state::JobState;

/// Builds the request. The error repeats neither the URL nor the secret.
pub(super) fn build(state: &JobState, attempt: &Attempt) -> anyhow::Result<outbound::Request> {
    let decrypt = |purpose: &str, sealed: &[u8]| -> anyhow::Result<String> {
        Ok(String::from_utf8(state.master_key.open(purpose, sealed)?)?)
    };
    let template = template(attempt).context("this version does not know the template")?;
    let url = chat::address(template, decrypt(webhooks::URL_PURPOSE, &attempt.sealed_url)?);
    // The newest secret first, as Standard Webhooks requires.
    let mut secrets = vec![decrypt(webhooks::SECRET_PURPOSE, &attempt.sealed_secret)?];
    if let Some(previous) = &attempt.sealed_previous_secret {
        secrets.push(decrypt(webhooks::SECRET_PURPOSE, previous)?);
    }
    let id = attempt.delivery_id.to_string();
    let timestamp = state.clock.now().timestamp();
    let body = body(template, attempt).context("the event can't be serialized")?;
    let signature = webhooks::sign(&secrets, &id, timestamp, &body);
    anyhow::ensure!(!signature.is_empty(), "the signing secret is invalid");
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("webhook-id", HeaderValue::from_str(&id)?);
    headers.insert("webhook-timestamp", HeaderValue::from(timestamp));
    headers.insert("webhook-signature", HeaderValue::from_str(&signature)?);
    Ok(outbound::Request::post(url, headers, body.into()))
}

pub(super) fn template(attempt: &Attempt) -> Option<Template> {
    Template::parse(&attempt.template)
}

/// Serializes the event in the template's format, with the webhook's field names.
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
