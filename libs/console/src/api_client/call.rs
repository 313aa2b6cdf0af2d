//! A call of an operation: its parameters, its body and its idempotency key.

use http::Method;
use percent_encoding::utf8_percent_encode;
use serde_json::Value;

use super::operations::Operation;
use crate::url_query::PATH_SEGMENT;

/// A call of an operation.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(super) operation: &'static Operation,
    path: String,
    query: Vec<(String, String)>,
    pub(super) body: Option<Value>,
    pub(super) idempotency_key: Option<String>,
    /// Whether it only reads, whatever its method.
    pub(super) is_query: bool,
}

impl Call {
    pub(crate) fn of(operation: &'static Operation) -> Self {
        let path = operation.path.to_owned();
        Self { operation, path, query: Vec::new(), body: None, idempotency_key: None, is_query: false }
    }

    /// Sets a parameter of the path. The value is a single segment, whatever it contains.
    #[must_use]
    pub(crate) fn path(mut self, name: &str, value: &str) -> Self {
        let value = utf8_percent_encode(value, PATH_SEGMENT).to_string();
        self.path = self.path.replace(&format!("{{{name}}}"), &value);
        self
    }

    /// Adds a parameter of the query.
    #[must_use]
    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        self.query.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a parameter of the query if there is a value.
    #[must_use]
    pub(crate) fn optional_query(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    #[must_use]
    pub(crate) fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Sets the body of a query: a POST that changes nothing.
    #[must_use]
    pub(crate) fn query_body(self, body: Value) -> Self {
        Self { is_query: true, ..self.body(body) }
    }

    /// Sets the `Idempotency-Key`, which is meaningful for a POST.
    #[must_use]
    pub(crate) fn idempotency_key(mut self, key: Option<&str>) -> Self {
        let is_post = self.operation.method == Method::POST;
        self.idempotency_key = key.filter(|_| is_post).map(str::to_owned);
        self
    }

    /// Returns the path and the query of the request.
    pub(super) fn path_and_query(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        format!("{}?{query}", self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::super::operations::{SUBMISSIONS_LIST, SUBMISSIONS_READ};
    use super::*;

    #[test]
    fn a_value_stays_within_its_segment_and_its_parameter() {
        let call = Call::of(&SUBMISSIONS_READ).path("id", "../keys").path("subId", "a?b#c/{id}");
        assert_eq!(call.path_and_query(), "/api/forms/%2E%2E%2Fkeys/submissions/a%3Fb%23c%2F%7Bid%7D");
        let call = Call::of(&SUBMISSIONS_LIST).path("id", "1").query("search", "a&status=all");
        assert_eq!(call.path_and_query(), "/api/forms/1/submissions?search=a%26status%3Dall");
    }
}
