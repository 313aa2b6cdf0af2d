//! API keys: the list, a new one, rotation and revocation.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde_json::{Value, json};
use web::Uncompressed;

use super::{AccountForm, PathParameters};
use crate::api_client::operations::{KEYS_CREATE, KEYS_LIST, KEYS_REVOKE, KEYS_ROTATE};
use crate::api_client::{Answer, Call, Refusal};
use crate::flash::Flash;
use crate::page::{Page, Section, redirect};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the keys, and asks before one is rotated or revoked.
pub(crate) async fn list(State(console): State<Console>, viewer: Viewer, query: UrlQuery) -> Response {
    show(&console, &viewer, &query, |page| page).await
}

/// Makes a key. The answer to the post shows its secret: a page of its own address could be opened again.
pub(crate) async fn create(State(console): State<Console>, viewer: Viewer, form: AccountForm) -> Response {
    let mut body = form.to_json(&console.document, &KEYS_CREATE);
    if let Value::Object(members) = &mut body {
        let scopes = members.remove("may");
        let scopes =
            scopes.as_ref().and_then(Value::as_str).unwrap_or("*:read").split(',').collect::<Vec<_>>();
        members.insert("scopes".to_owned(), json!(scopes));
    }
    let call = Call::of(&KEYS_CREATE).body(body).idempotency_key(form.idempotency_key());
    match console.call(&viewer, call).await {
        Ok(created) => show_secret(&console, &viewer, created, false).await,
        Err(refusal) => {
            show(&console, &viewer, &UrlQuery::default(), |page| page.problem(&refusal).keep(&form)).await
        }
    }
}

/// Rotates a key. As for a new key, the answer to the post shows its secret.
pub(crate) async fn rotate(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let call = Call::of(&KEYS_ROTATE).path("id", path.get("id")).idempotency_key(form.idempotency_key());
    match console.call(&viewer, call).await {
        Ok(rotated) => show_secret(&console, &viewer, rotated, true).await,
        Err(refusal) => refused(&console, &viewer, &refusal).await,
    }
}

/// Revokes a key.
pub(crate) async fn revoke(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    _: AccountForm,
) -> Response {
    match console.call(&viewer, Call::of(&KEYS_REVOKE).path("id", path.get("id"))).await {
        Ok(_) => redirect(&console, "/console/keys", Some(Flash::KeyRevoked)),
        Err(refusal) => refused(&console, &viewer, &refusal).await,
    }
}

/// Shows the list with a secret, uncompressed.
async fn show_secret(console: &Console, viewer: &Viewer, key: Value, is_rotated: bool) -> Response {
    let with_secret = |page: Page| page.with("created", key).with("is_rotated", is_rotated);
    let mut response = show(console, viewer, &UrlQuery::default(), with_secret).await;
    response.extensions_mut().insert(Uncompressed);
    response
}

/// Shows the list with the reason why a key was not changed.
async fn refused(console: &Console, viewer: &Viewer, refusal: &Refusal) -> Response {
    let with_problem = |page: Page| page.status(refusal.status()).with("change_problem", refusal);
    show(console, viewer, &UrlQuery::default(), with_problem).await
}

async fn show(
    console: &Console,
    viewer: &Viewer,
    query: &UrlQuery,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let call = Call::of(&KEYS_LIST).query("sort", "newest").optional_query("cursor", query.get("cursor"));
    let (account, list) = join!(console.account(viewer), console.call(viewer, call));
    let list: Answer = list.map(with_scopes_in_words);
    let chosen = |change: &str| {
        let (id, keys) = (query.get(change)?, list.as_ref().ok()?["keys"].as_array()?);
        keys.iter().find(|key| key["id"] == id).cloned()
    };
    let page = Page::new(Section::Keys, "keys.html")
        .main("list", &list)
        .with("to_rotate", chosen("rotate"))
        .with("to_revoke", chosen("revoke"));
    add(page).respond(console, viewer, &account)
}

/// Adds to each key what it may do, in words.
fn with_scopes_in_words(mut list: Value) -> Value {
    for key in list["keys"].as_array_mut().into_iter().flatten() {
        let scopes = key["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        key["may"] = json!(in_words(&scopes.collect::<Vec<_>>()));
    }
    list
}

/// Returns what scopes allow: `Read everything`, `Read and change pages, forms`.
fn in_words(scopes: &[&str]) -> String {
    if scopes.iter().any(|scope| ["*", "*:*"].contains(scope)) {
        return "Everything".to_owned();
    }
    let parts = scopes.iter().filter_map(|scope| scope.split_once(':'));
    let phrase = |(resource, action): (&str, &str)| {
        let verb = match action {
            "*" => "manage",
            "read" => "read",
            "create" => "create",
            "update" => "change",
            other => other,
        };
        format!("{verb} {}", if resource == "*" { "everything" } else { resource })
    };
    let mut words = parts.map(phrase).collect::<Vec<_>>().join(", ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_read_as_a_sentence() {
        assert_eq!(in_words(&["*"]), "Everything");
        assert_eq!(in_words(&["*:read"]), "Read everything");
        assert_eq!(in_words(&["pages:*", "forms:create"]), "Manage pages, create forms");
    }
}
