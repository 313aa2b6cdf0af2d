//! The query of a page: what a screen shows is in its URL, so that a link leads to the same view.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// What is escaped in a segment of a path: a value is a single segment, whatever it contains.
pub(crate) const PATH_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// Maximum number of parameters; further ones are ignored. No page has as many.
const PARAMETERS_MAX: usize = 100;

/// The parameters of a query, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UrlQuery(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for UrlQuery {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default()))
    }
}

impl UrlQuery {
    pub(crate) fn parse(query: &str) -> Self {
        Self::of(form_urlencoded::parse(query.as_bytes()).into_owned())
    }

    /// Returns the query of these names and values.
    pub(crate) fn of(parameters: impl Iterator<Item = (String, String)>) -> Self {
        Self(parameters.take(PARAMETERS_MAX).collect())
    }

    /// Returns the last value of a parameter; `None` if it is absent or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns the parameters with this prefix, without it.
    pub(crate) fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }

    /// Returns the query with a parameter replaced; `None` removes it.
    #[must_use]
    pub(crate) fn with(&self, name: &str, value: Option<&str>) -> Self {
        let kept = self.0.iter().filter(|(found, _)| found != name).cloned();
        Self(kept.chain(value.map(|value| (name.to_owned(), value.to_owned()))).collect())
    }

    /// Returns the query as the end of a link: `?a=b`, or nothing.
    pub(crate) fn to_link(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        format!("?{}", form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_changes_one_parameter() {
        let query = UrlQuery::parse("period=7d&filters.country=DE&search=a%26b");
        assert_eq!(
            query.with("period", Some("30d")).to_link(),
            "?filters.country=DE&search=a%26b&period=30d"
        );
        assert_eq!(query.with("filters.country", None).to_link(), "?period=7d&search=a%26b");
        assert_eq!(UrlQuery::parse("a=1").with("a", None).to_link(), "");
        assert_eq!(query.with_prefix("filters.").collect::<Vec<_>>(), [("country", "DE")]);
        assert_eq!(UrlQuery::parse("a=1&a=&b=2").get("a"), None);
    }

    #[test]
    fn denial_of_service_by_many_parameters_is_prevented() {
        let many: String = (0..4_000).map(|number| format!("p{number}=1&")).collect();
        let query = UrlQuery::parse(&many);
        assert_eq!((query.get("p99"), query.get("p100")), (Some("1"), None));
    }
}
