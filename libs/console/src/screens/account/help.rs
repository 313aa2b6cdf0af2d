//! A request to the operator of this installation.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use crate::api_client::Call;
use crate::api_client::operations::HELP_CREATE;
use crate::page::{Page, Section};
use crate::screens::AccountForm;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Topics of a request, as the API names them.
const CATEGORIES: [&str; 6] =
    ["Help", "Bug report", "Feature request", "Billing", "Feedback", "API / Integration"];
/// Severities of a problem, as the API names them.
const SEVERITIES: [&str; 4] = ["Low", "Medium", "High", "Critical"];

/// Shows the form.
pub(super) async fn show(State(console): State<Console>, viewer: Viewer, query: UrlQuery) -> Response {
    respond(&console, &viewer, |page| page.with("url", query.get("url"))).await
}

/// Sends the request. The answer to the post says what happens next, with the reference of the request.
pub(super) async fn create(State(console): State<Console>, viewer: Viewer, form: AccountForm) -> Response {
    let body = form.to_json(&console.document, &HELP_CREATE);
    let call = Call::of(&HELP_CREATE).body(body).idempotency_key(form.idempotency_key());
    match console.call(&viewer, call).await {
        Ok(sent) => {
            let add = |page: Page| {
                page.status(StatusCode::CREATED).with("sent", sent).with("reply_to", form.get("email"))
            };
            respond(&console, &viewer, add).await
        }
        Err(refusal) => respond(&console, &viewer, |page| page.problem(&refusal).keep(&form)).await,
    }
}

async fn respond(console: &Console, viewer: &Viewer, add: impl FnOnce(Page) -> Page) -> Response {
    let account = console.account(viewer).await;
    let page = Page::new(Section::Account, "account/help.html")
        .main("owner", &account)
        .with("categories", CATEGORIES)
        .with("severities", SEVERITIES);
    add(page).respond(console, viewer, &account)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::Value;

    use super::*;

    #[test]
    fn topics_and_severities_are_those_of_the_api() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../control-plane/openapi.json");
        let document: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for (schema, offered) in [("HelpCategory", &CATEGORIES[..]), ("HelpSeverity", &SEVERITIES[..])] {
            let known = document["components"]["schemas"][schema]["enum"].as_array().unwrap();
            let known: BTreeSet<_> = known.iter().filter_map(Value::as_str).collect();
            assert_eq!(offered.iter().copied().collect::<BTreeSet<_>>(), known, "{schema}");
        }
    }
}
