//! The request of an attempt. It is not stored: it is built again from the delivery and its webhook, and shown only if its
//! digest is that of the request that was sent.

use chrono::{DateTime, Utc};
use domain::webhooks::{
    Delivery, FieldNames, Request, SECRET_PURPOSE, Template, URL_PURPOSE, signed_request,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use store::Conn;
use store::deliveries::{Attempt, LoggedAttempt, find_last_attempt, read_field_labels};
use uuid::Uuid;
use web::Problem;

use crate::App;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeliveryRequestView {
    /// Number of the attempt that sent it.
    attempt: i32,
    /// Its time, which the signature covers.
    sent_at: DateTime<Utc>,
    /// `POST`.
    method: &'static str,
    /// The URL that it was posted to.
    url: String,
    /// Its headers, without those of the connection.
    headers: Vec<DeliveryHeaderView>,
    /// Its body, byte for byte.
    body: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DeliveryHeaderView {
    /// Name of the header, in lower case.
    name: &'static str,
    /// Value of the header.
    value: String,
}

/// Why the request of a delivery is not shown.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum DeliveryRequestNote {
    /// The last attempt sent nothing, or there was none yet.
    NotSent,
    /// It was sent by an earlier release, which did not record it.
    NotRecorded,
    /// The webhook or the form was changed since.
    Changed,
}

/// Returns the request of the last attempt. The secrets stay here: of them only signatures are shown, which were sent.
pub(super) async fn build(
    app: &App,
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    last: Option<&LoggedAttempt>,
) -> Result<Result<DeliveryRequestView, DeliveryRequestNote>, Problem> {
    let Some((attempt, sent_at, digest)) =
        last.and_then(|last| Some((last.attempt, last.signed_at?, last.request_digest.as_deref()?)))
    else {
        let has_response = last.is_some_and(|last| last.status_code.is_some());
        let note = if has_response { DeliveryRequestNote::NotRecorded } else { DeliveryRequestNote::NotSent };
        return Ok(Err(note));
    };
    let Some(mut now) = find_last_attempt(conn, account_id, id).await? else {
        return Ok(Err(DeliveryRequestNote::Changed));
    };
    read_field_labels(conn, std::slice::from_mut(&mut now)).await?;
    let secrets = open_secrets(app, &now)?;
    let url = open(app, URL_PURPOSE, &now.sealed_url)?;
    // Before a rotation the previous secret signed alone, and during it with the new one.
    let signers = [&secrets[..], &secrets[..1], &secrets[1..]];
    let found = signers.into_iter().find_map(|secrets| {
        let request = sign(&now, url.clone(), secrets, sent_at)?;
        (request.digest() == *digest).then_some(request)
    });
    let Some(Request { url, headers, body }) = found else { return Ok(Err(DeliveryRequestNote::Changed)) };
    let headers = headers.into_iter().map(|(name, value)| DeliveryHeaderView { name, value }).collect();
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(Ok(DeliveryRequestView { attempt, sent_at, method: "POST", url, headers, body }))
}

fn open_secrets(app: &App, attempt: &Attempt) -> Result<Vec<String>, Problem> {
    let sealed = [Some(&attempt.sealed_secret), attempt.sealed_previous_secret.as_ref()];
    sealed.into_iter().flatten().map(|sealed| open(app, SECRET_PURPOSE, sealed)).collect()
}

fn open(app: &App, purpose: &str, sealed: &[u8]) -> Result<String, Problem> {
    Ok(String::from_utf8_lossy(&app.master_key.open(purpose, sealed)?).into_owned())
}

/// Returns the request as these secrets sign it. `None` if it can't be built.
fn sign(attempt: &Attempt, url: String, secrets: &[String], sent_at: DateTime<Utc>) -> Option<Request> {
    let delivery = Delivery {
        id: &attempt.delivery_id.to_string(),
        template: Template::parse(&attempt.template)?,
        url,
        secrets,
        event: &attempt.payload,
        names: FieldNames {
            mapping: attempt.field_mapping.as_ref().and_then(Value::as_object),
            form: &attempt.fields,
        },
        telegram_chat_id: attempt.telegram_chat_id.as_deref(),
        depth: attempt.depth,
    };
    signed_request(delivery, sent_at.timestamp()).ok()
}
