//! The HTTP request of an operation and its arguments.

use domain::FieldError;
use http::{HeaderName, HeaderValue, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::operation::{Location, Operation, Parameter};

/// The unreserved characters of RFC 3986 stay as they are.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A request, without the headers that each has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestParts {
    pub(crate) method: Method,
    pub(crate) path_and_query: String,
    /// Headers of the operation, such as `If-Match`.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Option<Value>,
}

impl Operation {
    /// Returns the request of these arguments: those of the path, the query and the headers by their names, and the others
    /// as the body. The values of the body are left to the operation itself.
    ///
    /// # Errors
    /// Arguments that the operation does not have, that are missing, or that can't stand in a path, a query or a header. An
    /// id that is none could select another operation: `/api/pages/archives` is no page.
    pub(crate) fn request(&self, arguments: &Map<String, Value>) -> Result<RequestParts, Vec<FieldError>> {
        let in_path = self.parameters.iter().filter(|parameter| parameter.location == Location::Path);
        let no_ids =
            in_path.filter(|parameter| parameter.schema["format"] == "uuid").filter_map(|parameter| {
                let text = plain(arguments.get(&parameter.name)?).filter(|text| !text.is_empty())?;
                let is_id = Uuid::parse_str(&text).is_ok();
                let message = || format!("{} must be an id, which is a UUID", parameter.name);
                (!is_id).then(|| FieldError::new(&parameter.name, "format", message()))
            });
        self.build(arguments, no_ids.collect())
    }

    /// Returns the request of arguments that have placeholders in place of ids.
    ///
    /// # Errors
    /// As [`Self::request`], but for ids.
    pub(crate) fn outline(&self, arguments: &Map<String, Value>) -> Result<RequestParts, Vec<FieldError>> {
        self.build(arguments, Vec::new())
    }

    fn build(
        &self,
        arguments: &Map<String, Value>,
        mut errors: Vec<FieldError>,
    ) -> Result<RequestParts, Vec<FieldError>> {
        errors.extend(self.missing(arguments));
        let (mut path, mut query) = (self.path.clone(), form_urlencoded::Serializer::new(String::new()));
        let (mut headers, mut body) = (Vec::new(), Map::new());
        for (name, value) in arguments {
            match self.place_of(name) {
                Place::Path => match plain(value).filter(|text| !text.is_empty()) {
                    Some(text) => {
                        let encoded = utf8_percent_encode(&text, SEGMENT).to_string();
                        path = path.replace(&format!("{{{name}}}"), &encoded);
                    }
                    None => errors.push(FieldError::new(
                        name,
                        "type",
                        format!("{name} must be a text that is not empty"),
                    )),
                },
                Place::Query | Place::Header(_) if value.is_null() => {}
                Place::Query => {
                    query.append_pair(name, &plain(value).unwrap_or_else(|| value.to_string()));
                }
                Place::Header(parameter) => match header_of(parameter, value) {
                    Some(header) => headers.push(header),
                    None => errors.push(FieldError::new(
                        name,
                        "type",
                        format!("{name} must be a text of printable ASCII that is not empty"),
                    )),
                },
                Place::Body => {
                    body.insert(name.clone(), value.clone());
                }
                Place::None => errors.push(FieldError::new(name, "unknown", self.unknown(name))),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let query = query.finish();
        let path_and_query = if query.is_empty() { path } else { format!("{path}?{query}") };
        let is_sent = self.request_body.is_some() && (self.is_body_required || !body.is_empty());
        let body = is_sent.then_some(Value::Object(body));
        Ok(RequestParts { method: self.method.clone(), path_and_query, headers, body })
    }

    /// Returns where an argument stands. A member of the body has precedence over a header.
    fn place_of(&self, name: &str) -> Place<'_> {
        let parameter = self.parameters.iter().find(|parameter| parameter.argument == name);
        match parameter.map(|parameter| (parameter.location, parameter)) {
            Some((Location::Path, _)) => Place::Path,
            Some((Location::Query, _)) => Place::Query,
            _ if self.takes_in_body(name) => Place::Body,
            Some((Location::Header, parameter)) => Place::Header(parameter),
            None => Place::None,
        }
    }

    fn takes_in_body(&self, name: &str) -> bool {
        let named = self.request_body.as_ref().and_then(|body| body["properties"].as_object());
        self.has_open_body() || named.is_some_and(|members| members.contains_key(name))
    }

    fn missing(&self, arguments: &Map<String, Value>) -> Vec<FieldError> {
        let required =
            self.input_schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let missing = required.filter(|name| !arguments.contains_key(*name));
        missing.map(|name| FieldError::new(name, "required", format!("{name} is required"))).collect()
    }

    fn unknown(&self, name: &str) -> String {
        let members = self.input_schema["properties"].as_object().into_iter().flatten();
        let known: Vec<&str> = members.map(|(name, _)| name.as_str()).collect();
        match known.as_slice() {
            [] => format!("{name} is not an argument of {}, which takes none", self.id),
            known => format!("{name} is not an argument of {}; it takes {}", self.id, known.join(", ")),
        }
    }
}

/// Where an argument stands in a request.
enum Place<'a> {
    Path,
    Query,
    Header(&'a Parameter),
    Body,
    None,
}

fn header_of(parameter: &Parameter, value: &Value) -> Option<(HeaderName, HeaderValue)> {
    let text = plain(value)
        .filter(|text| !text.is_empty() && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)))?;
    Some((parameter.name.parse().ok()?, HeaderValue::try_from(text).ok()?))
}

/// Returns the text of a scalar.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
