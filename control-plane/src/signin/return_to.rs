//! The query of a sign-in: the path to return to as `returnTo`, and `again` for one that must be new.

use domain::sign_ins::{HOME, return_path};
use schemars::JsonSchema;
use serde::Deserialize;

/// The query of pages that lead to a sign-in.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct ReturnQuery {
    #[serde(rename = "returnTo")]
    return_to: Option<String>,
    /// Whether the provider must ask for the credentials again.
    #[serde(default)]
    pub(super) again: bool,
}

impl ReturnQuery {
    /// Returns a path of this host, whatever the query contains.
    pub(super) fn path(&self) -> &str {
        return_path(self.return_to.as_deref())
    }
}

/// Returns the path of `/login` with this path to return to.
pub(super) fn login_path(return_to: Option<&str>) -> String {
    with_return_to("/login", return_path(return_to))
}

/// Adds `returnTo` to a path, unless it would be the default.
pub(super) fn with_return_to(path: &str, return_to: &str) -> String {
    if return_to == HOME {
        return path.to_owned();
    }
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("returnTo", return_to).finish();
    format!("{path}?{query}")
}

/// Adds `again` to a path with or without a query.
pub(super) fn with_again(path: String, again: bool) -> String {
    match (again, path.contains('?')) {
        (false, _) => path,
        (true, false) => path + "?again=true",
        (true, true) => path + "&again=true",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_path_returns_to_paths_of_this_host_only() {
        assert_eq!(login_path(Some("/claim/abc")), "/login?returnTo=%2Fclaim%2Fabc");
        for ignored in [None, Some(HOME), Some("//evil.test")] {
            assert_eq!(login_path(ignored), "/login");
        }
    }
}
