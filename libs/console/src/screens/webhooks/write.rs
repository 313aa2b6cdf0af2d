//! Makes webhooks, tests them, and sends deliveries again.

use axum::extract::State;
use axum::response::Response;
use percent_encoding::utf8_percent_encode;
use serde_json::{Value, json};
use web::Uncompressed;

use super::page_path::page_path;
use super::view::with_status;
use super::{list, show};
use crate::api_client::operations::{
    DELIVERIES_RETRY, DELIVERIES_RETRY_FAILED, WEBHOOKS_CREATE, WEBHOOKS_TEST,
};
use crate::api_client::{Answer, Call};
use crate::flash::Flash;
use crate::page::{Page, redirect};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::{PATH_SEGMENT, UrlQuery};
use crate::viewer::Viewer;

/// Makes a webhook. The answer to the post shows its secret.
pub(super) async fn create(State(console): State<Console>, viewer: Viewer, form: AccountForm) -> Response {
    let mut body = form.to_json(&console.document, &WEBHOOKS_CREATE);
    if let Value::Object(members) = &mut body
        && members.remove("hears").is_some_and(|hears| hears == "all")
    {
        // Without ids, a webhook hears of all forms.
        members.remove("formIds");
    }
    let call = Call::of(&WEBHOOKS_CREATE).body(body).idempotency_key(form.idempotency_key());
    let query = UrlQuery::default();
    match console.call(&viewer, call).await {
        Ok(created) => {
            let mut response =
                list::respond(&console, &viewer, &query, |page| page.with("created", created)).await;
            response.extensions_mut().insert(Uncompressed);
            response
        }
        Err(refusal) => {
            list::respond(&console, &viewer, &query, |page| page.problem(&refusal).keep(&form)).await
        }
    }
}

/// Sends a test event, and shows what the receiver answered.
pub(super) async fn test(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let call = Call::of(&WEBHOOKS_TEST).path("id", path.get("id")).idempotency_key(form.idempotency_key());
    let tested = console.call(&viewer, call).await.map(with_status);
    let add = |page: Page| match tested {
        Ok(delivery) => page.with("tested", delivery),
        Err(refusal) => page.problem(&refusal),
    };
    show::respond(&console, &viewer, path.get("id"), &UrlQuery::default(), add).await
}

/// Sends one delivery again.
pub(super) async fn retry(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let call =
        Call::of(&DELIVERIES_RETRY).path("id", path.get("id")).path("deliveryId", path.get("delivery"));
    let answer = console.call(&viewer, call.idempotency_key(form.idempotency_key())).await;
    let delivery = utf8_percent_encode(path.get("delivery"), PATH_SEGMENT);
    let page = format!("{}/deliveries/{delivery}", page_path(path.get("id")));
    after(&console, &viewer, path.get("id"), &page, answer).await
}

/// Sends what failed since a time again: since it began to fail, or since a day.
pub(super) async fn retry_failed(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let day = form.get("day").map(|day| format!("{day}T00:00:00Z"));
    let body = json!({ "since": day.as_deref().or(form.get("since")).unwrap_or_default() });
    let call = Call::of(&DELIVERIES_RETRY_FAILED).path("id", path.get("id")).body(body);
    let answer = console.call(&viewer, call.idempotency_key(form.idempotency_key())).await;
    after(&console, &viewer, path.get("id"), &page_path(path.get("id")), answer).await
}

/// Leads to a page once deliveries are sent again.
async fn after(console: &Console, viewer: &Viewer, id: &str, page: &str, answer: Answer) -> Response {
    match answer {
        Ok(_) => redirect(console, page, Some(Flash::SentAgain)),
        Err(refusal) => {
            show::respond(console, viewer, id, &UrlQuery::default(), |page| page.problem(&refusal)).await
        }
    }
}
