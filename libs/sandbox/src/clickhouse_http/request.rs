//! A parsed request to ClickHouse's HTTP interface: statement, user, settings.

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use base64::Engine as _;

use super::exception::Exception;
use super::frames::Encoding;

/// Arguments of the interface that have no effect here and are ignored.
const IGNORED: [&str; 5] = ["quota_key", "stacktrace", "buffer_size", "client_protocol_version", "query_id"];
/// Arguments that need features libchdb doesn't have.
const UNSUPPORTED: [&str; 3] = ["session_id", "role", "close_session"];

/// A request without its body.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// The `query` argument. The body continues it, or is the whole statement if this is empty.
    pub(crate) query: String,
    /// Values of `{name:Type}`.
    pub(crate) parameters: Vec<(String, String)>,
    /// Settings of this statement.
    pub(crate) settings: Vec<(String, String)>,
    /// The database of unqualified tables.
    pub(crate) database: Option<String>,
    /// The output format of a statement without one.
    pub(crate) default_format: Option<String>,
    /// The user; `None` means `default`.
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// The client's id of this statement.
    pub(crate) query_id: Option<String>,
    /// Whether writing is forbidden, because the request is a GET.
    pub(crate) readonly: bool,
    /// Whether the body consists of ClickHouse's compressed blocks.
    pub(crate) compressed_body: bool,
    /// Whether to respond only after the statement has ended.
    pub(crate) wait_for_end: bool,
    /// `compress=1`.
    pub(crate) compress: bool,
    /// The id by which the running statement is cancelled if its client disconnects.
    pub(crate) kill_id: Option<String>,
}

impl Request {
    /// Parses the URL and the headers.
    pub(crate) fn parse(parts: &Parts) -> Result<Self, Exception> {
        let header = |name: &str| Some(parts.headers.get(name)?.to_str().ok()?.to_owned());
        let (user, password) = basic(&parts.headers).unzip();
        let mut request = Self {
            readonly: parts.method != Method::POST,
            user: header("x-clickhouse-user").or(user),
            password: header("x-clickhouse-key").or(password),
            database: header("x-clickhouse-database"),
            default_format: header("x-clickhouse-format"),
            ..Self::default()
        };
        let arguments = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        for (name, value) in arguments {
            request.argument(&name, value.into_owned())?;
        }
        Ok(request)
    }

    fn argument(&mut self, name: &str, value: String) -> Result<(), Exception> {
        let is_true = || value == "1" || value.eq_ignore_ascii_case("true");
        match name {
            "query" => self.query.push_str(&value),
            "database" => self.database = Some(value),
            "default_format" => self.default_format = Some(value),
            "user" => self.user = Some(value),
            "password" => self.password = Some(value),
            "query_id" => self.query_id = Some(value),
            "compress" => self.compress = is_true(),
            "decompress" => self.compressed_body = is_true(),
            "wait_end_of_query" => self.wait_for_end = is_true(),
            _ if UNSUPPORTED.contains(&name) => {
                let message = format!(
                    "The sandbox's ClickHouse has no sessions and roles, so `{name}` is not supported"
                );
                return Err(Exception::new(48, "NOT_IMPLEMENTED", message));
            }
            _ if IGNORED.contains(&name) => {}
            _ => match name.strip_prefix("param_") {
                Some(parameter) => self.parameters.push((parameter.to_owned(), value)),
                None => self.settings.push((name.to_owned(), value)),
            },
        }
        Ok(())
    }

    /// Adds a part of a multipart body: the statement, or a parameter.
    pub(crate) fn part(&mut self, name: &str, value: String) -> Result<(), Exception> {
        if name == "query" || name.starts_with("param_") {
            return self.argument(name, value);
        }
        Err(Exception::new(
            48,
            "NOT_IMPLEMENTED",
            format!("External tables (part `{name}`) are not supported"),
        ))
    }

    /// Returns whether to cancel the statement when its client disconnects: if requested, and only if it writes nothing.
    pub(crate) fn cancels_on_disconnect(&self) -> bool {
        let is_set = |setting: &str| {
            let found = self.settings.iter().rfind(|(name, _)| name == setting);
            found.is_some_and(|(_, value)| value != "0" && value != "false")
        };
        is_set("cancel_http_readonly_queries_on_client_close") && (self.readonly || is_set("readonly"))
    }

    /// Returns the encoding of the response.
    pub(crate) fn encoding(&self, headers: &HeaderMap) -> Encoding {
        let allowed = |(name, value): &(String, String)| name == "enable_http_compression" && value == "1";
        let accepts = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
        let lz4 =
            accepts.is_some_and(|list| list.split(',').any(|one| one.trim().eq_ignore_ascii_case("lz4")));
        match (self.compress, lz4 && self.settings.iter().any(allowed)) {
            (true, _) => Encoding::Native,
            (false, true) => Encoding::Lz4Frames,
            (false, false) => Encoding::Plain,
        }
    }
}

fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let encoded = headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Basic ")?;
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    let (user, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// The only user.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) user: String,
    /// The password; empty admits every client.
    pub(crate) password: String,
}

impl Account {
    /// Checks the request's user and password.
    pub(crate) fn authenticate(&self, request: &Request) -> Result<(), Exception> {
        use subtle::ConstantTimeEq as _;
        let user = request.user.as_deref().unwrap_or("default");
        let password = request.password.as_deref().unwrap_or_default();
        if user == self.user && bool::from(password.as_bytes().ct_eq(self.password.as_bytes())) {
            return Ok(());
        }
        let message = format!(
            "{user}: Authentication failed: password is incorrect, or there is no user with such name."
        );
        Err(Exception::new(516, "AUTHENTICATION_FAILED", message))
    }
}
