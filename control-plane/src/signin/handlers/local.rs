//! `/login/local`: on a machine of one's own, whoever types an e-mail is whoever they say. The service refuses to
//! start with this page at any other base URL.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use domain::sign_ins::{return_path, shown};
use http::HeaderMap;
use serde_json::json;
use store::identities::Vouched;
use web::{Problem, Query};

use super::login::Onward;
use super::origin::FromOurPage;
use super::{posted, session};
use crate::App;

/// No provider's issuer: those are addresses.
const ISSUER: &str = "local";

pub(super) async fn show(State(app): State<App>, Query(onward): Query<Onward>) -> Response {
    app.signin.pages.show_form("local.html", &json!({ "returnTo": onward.path() }))
}

pub(super) async fn sign_in(
    State(app): State<App>,
    _: FromOurPage,
    headers: HeaderMap,
    form: Bytes,
) -> Result<Response, Problem> {
    let given = posted(&form, "returnTo");
    let return_to = return_path(given.first().map(String::as_str));
    let typed = posted(&form, "email").first().and_then(|email| shown(email));
    let Some(email) = typed.filter(|email| email.contains('@')) else {
        let context =
            json!({ "returnTo": return_to, "wrong": "Type an e-mail address, like ada@example.com." });
        return Ok(app.signin.pages.show_form("local.html", &context));
    };
    let who = Vouched {
        issuer: ISSUER.to_owned(),
        subject: email.to_lowercase(),
        email: Some(email),
        email_verified: false,
        name: None,
    };
    session::begin(&app, &headers, &who, return_to).await
}
