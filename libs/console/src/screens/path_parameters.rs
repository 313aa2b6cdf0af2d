//! The parameters of a page's path. The API checks ids, so that a wrong one has the API's answer.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;

/// The parameters of a page's path.
#[derive(Debug, Default)]
pub(crate) struct PathParameters(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for PathParameters {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let Ok(found) = RawPathParams::from_request_parts(parts, state).await else {
            return Ok(Self::default());
        };
        Ok(Self(found.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }
}

impl PathParameters {
    /// Returns a parameter; empty if the path has none of this name.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }
}
