//! `/login`: the ways to sign in.

use axum::extract::State;
use axum::response::Response;
use domain::sign_ins::{HOME, return_path};
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use web::{Problem, Query};

use super::session::Visitor;
use crate::App;

/// Where to go afterwards.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Onward {
    #[serde(rename = "returnTo")]
    return_to: Option<String>,
}

impl Onward {
    /// A path of this host, whatever was asked for.
    pub(super) fn path(&self) -> &str {
        return_path(self.return_to.as_deref())
    }
}

pub(super) async fn show(
    State(app): State<App>,
    Visitor(session): Visitor,
    Query(onward): Query<Onward>,
) -> Result<Response, Problem> {
    let return_to = onward.path();
    let providers: Vec<_> = app
        .signin
        .providers
        .iter()
        .map(|one| {
            let path = with_return(&format!("/api/auth/oauth/{}", one.name), return_to);
            json!({ "label": one.label, "path": path })
        })
        .collect();
    let context = json!({
        "providers": providers,
        "local": app.signin.config.local.then(|| with_return("/login/local", return_to)),
        "claiming": return_to.starts_with("/claim/"),
        "signedIn": session.map(|session| json!({ "as": session.email.or(session.name) })),
        "returnTo": return_to,
    });
    Ok(app.signin.pages.show(StatusCode::OK, "login.html", &context))
}

/// The way to `/login`, and from there back.
pub(super) fn path(return_to: Option<&str>) -> String {
    with_return("/login", return_path(return_to))
}

fn with_return(path: &str, return_to: &str) -> String {
    if return_to == HOME {
        return path.to_owned();
    }
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("returnTo", return_to).finish();
    format!("{path}?{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_sign_in_leads_back_to_where_one_was() {
        assert_eq!(path(Some("/claim/abc")), "/login?returnTo=%2Fclaim%2Fabc");
        for nowhere in [None, Some(HOME), Some("//evil.test")] {
            assert_eq!(path(nowhere), "/login");
        }
    }
}
