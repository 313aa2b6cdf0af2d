//! `/login/local`: sign-in with any e-mail address, for development. The service refuses to start with it unless the
//! base URL is on localhost.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use domain::sign_ins::{return_path, shown};
use http::HeaderMap;
use serde_json::json;
use store::identities::ProviderIdentity;
use web::{Problem, Query};

use crate::App;
use crate::signin::form::form_values;
use crate::signin::origin::SameOrigin;
use crate::signin::return_to::ReturnQuery;
use crate::signin::session;

/// The issuer of local identities. It is not a URL, so no provider can have it.
const ISSUER: &str = "local";

pub(in crate::signin) async fn show(State(app): State<App>, Query(query): Query<ReturnQuery>) -> Response {
    app.signin.templates.show_form("local.html", &json!({ "returnTo": query.path() }))
}

pub(in crate::signin) async fn sign_in(
    State(app): State<App>,
    _: SameOrigin,
    headers: HeaderMap,
    form: Bytes,
) -> Result<Response, Problem> {
    let requested = form_values(&form, "returnTo");
    let return_to = return_path(requested.first().map(String::as_str));
    let typed = form_values(&form, "email").first().and_then(|email| shown(email));
    let Some(email) = typed.filter(|email| email.contains('@')) else {
        let context =
            json!({ "returnTo": return_to, "wrong": "Type an e-mail address, like ada@example.com." });
        return Ok(app.signin.templates.show_form("local.html", &context));
    };
    let identity = ProviderIdentity {
        issuer: ISSUER.to_owned(),
        subject: email.to_lowercase(),
        email: Some(email),
        email_verified: false,
        name: None,
    };
    session::begin(&app, &headers, &identity, return_to).await
}
