//! `/login`: the ways to sign in.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::json;
use web::{Problem, Query};

use crate::App;
use crate::signin::return_to::{ReturnQuery, with_again, with_return_to};
use crate::signin::session::OptionalSession;

pub(in crate::signin) async fn show(
    State(app): State<App>,
    OptionalSession(session): OptionalSession,
    Query(query): Query<ReturnQuery>,
) -> Result<Response, Problem> {
    let return_to = query.path();
    let providers: Vec<_> = app
        .signin
        .providers
        .iter()
        .map(|provider| {
            let path = with_return_to(&format!("/api/auth/oauth/{}", provider.name), return_to);
            json!({ "label": provider.label, "path": with_again(path, query.again) })
        })
        .collect();
    let context = json!({
        "providers": providers,
        "local": app.signin.config.local.then(|| with_return_to("/login/local", return_to)),
        "again": query.again,
        "claiming": return_to.starts_with("/claim/"),
        "signedIn": session.map(|session| json!({ "as": session.email.or(session.name) })),
        "returnTo": return_to,
    });
    Ok(app.signin.templates.show(StatusCode::OK, "login.html", &context))
}
