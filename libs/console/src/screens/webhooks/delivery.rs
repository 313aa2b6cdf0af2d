//! A delivery: its attempts with their answers, and the request as it was sent.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use http::StatusCode;
use serde_json::Value;
use web::Uncompressed;

use super::curl::curl;
use super::view::{error_in_words, with_state, with_status};
use crate::api_client::operations::{DELIVERIES_READ, WEBHOOKS_READ};
use crate::api_client::{Answer, Call, Refusal};
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::viewer::Viewer;

/// Bytes of a request's body that the page shows. The call of curl has all of it, or is left out.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Shows a delivery.
pub(super) async fn show(State(console): State<Console>, viewer: Viewer, path: PathParameters) -> Response {
    let (id, delivery_id) = (path.get("id"), path.get("delivery"));
    let (account, webhook, delivery) = join!(
        console.account(&viewer),
        console.call(&viewer, Call::of(&WEBHOOKS_READ).path("id", id)),
        console.call(&viewer, Call::of(&DELIVERIES_READ).path("deliveryId", delivery_id)),
    );
    let delivery: Answer = delivery.and_then(|delivery| of_webhook(delivery, id));
    let request = delivery.as_ref().ok().map(|delivery| &delivery["request"]);
    let is_short =
        |request: &&Value| request["body"].as_str().is_some_and(|body| body.len() <= BODY_BYTES_MAX);
    let curl = request.filter(is_short).map(curl);
    let page = Page::new(Section::Webhooks, "webhooks/delivery.html")
        .panel("webhook", &webhook.map(with_state))
        .main("delivery", &delivery.map(with_words))
        .with("curl", curl);
    let mut response = page.respond(&console, &viewer, &account);
    // The URL of a chat's webhook is its secret.
    response.extensions_mut().insert(Uncompressed);
    response
}

/// Refuses a delivery of another webhook than the one of the address.
fn of_webhook(delivery: Value, webhook_id: &str) -> Answer {
    if delivery["webhookId"] == webhook_id {
        return Ok(delivery);
    }
    let detail = "This webhook has no such delivery.";
    Err(Refusal::new(StatusCode::NOT_FOUND, "not_found", "Not found", detail))
}

/// Adds the words of errors, and shortens what is longer than a page should be.
fn with_words(delivery: Value) -> Value {
    let mut delivery = with_status(delivery);
    for attempt in delivery["attemptLog"].as_array_mut().into_iter().flatten() {
        let words = attempt["error"].as_str().map(|class| error_in_words(class).to_owned());
        attempt["words"] = words.into();
    }
    let Some(body) = delivery["request"]["body"].as_str().filter(|body| body.len() > BODY_BYTES_MAX) else {
        return delivery;
    };
    let cut = body[..body.floor_char_boundary(BODY_BYTES_MAX)].to_owned();
    delivery["request"]["body"] = cut.into();
    delivery["request"]["isCut"] = true.into();
    delivery
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_body_is_cut_and_a_missing_request_stays_missing() {
        let long = json!({ "status": "failed", "request": { "body": "é".repeat(BODY_BYTES_MAX) },
            "attemptLog": [{ "error": "timeout" }, { "error": null }] });
        let shown = with_words(long);
        assert_eq!(shown["request"]["isCut"], true);
        assert!(shown["request"]["body"].as_str().unwrap().len() <= BODY_BYTES_MAX);
        assert!(shown["attemptLog"][0]["words"].is_string() && shown["attemptLog"][1]["words"].is_null());
        assert_eq!(with_words(json!({ "request": null }))["request"], Value::Null);
        assert!(of_webhook(json!({ "webhookId": "1" }), "2").is_err());
    }
}
