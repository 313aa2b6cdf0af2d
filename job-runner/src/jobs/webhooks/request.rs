//! Builds the signed request of an attempt.

use anyhow::Context;
use chrono::SubsecRound as _;
use domain::webhooks::{Delivery, FieldNames, SECRET_PURPOSE, Template, URL_PURPOSE, signed_request};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use store::deliveries::{Attempt, SentRequest};

use crate::state::JobState;

/// Builds the request, and what is stored of it. The error repeats neither the URL nor the secret.
pub(super) fn build(state: &JobState, attempt: &Attempt) -> anyhow::Result<(outbound::Request, SentRequest)> {
    let decrypt = |purpose: &str, sealed: &[u8]| -> anyhow::Result<String> {
        Ok(String::from_utf8(state.master_key.open(purpose, sealed)?)?)
    };
    let mut secrets = vec![decrypt(SECRET_PURPOSE, &attempt.sealed_secret)?];
    if let Some(previous) = &attempt.sealed_previous_secret {
        secrets.push(decrypt(SECRET_PURPOSE, previous)?);
    }
    let delivery = Delivery {
        id: &attempt.delivery_id.to_string(),
        template: template(attempt).context("this version does not know the template")?,
        url: decrypt(URL_PURPOSE, &attempt.sealed_url)?,
        secrets: &secrets,
        event: &attempt.payload,
        names: FieldNames {
            mapping: attempt.field_mapping.as_ref().and_then(Value::as_object),
            form: &attempt.fields,
        },
        telegram_chat_id: attempt.telegram_chat_id.as_deref(),
        depth: attempt.depth,
    };
    let signed_at = state.clock.now().trunc_subsecs(0);
    let request = signed_request(delivery, signed_at.timestamp())?;
    let sent = SentRequest { signed_at, digest: request.digest() };
    let mut headers = HeaderMap::new();
    for (name, value) in request.headers {
        headers.insert(name, HeaderValue::from_str(&value)?);
    }
    Ok((outbound::Request::post(request.url, headers, request.body.into()), sent))
}

pub(super) fn template(attempt: &Attempt) -> Option<Template> {
    Template::parse(&attempt.template)
}
