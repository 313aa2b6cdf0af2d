//! A request to ClickHouse's HTTP interface, read: which statement, for whom, under which settings.

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use base64::Engine as _;

use super::exception::Exception;
use super::frames::Encoding;

/// Arguments of the interface that mean nothing here and are taken without a word.
const IGNORED: [&str; 5] = ["quota_key", "stacktrace", "buffer_size", "client_protocol_version", "query_id"];
/// Arguments whose meaning needs what a front over a library doesn't have.
const REFUSED: [&str; 3] = ["session_id", "role", "close_session"];

/// Everything a request says apart from its body.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// The `query` argument; the body follows it, or is the statement where this is empty.
    pub(crate) query: String,
    /// Values of `{name:Type}`.
    pub(crate) parameters: Vec<(String, String)>,
    /// Settings of this statement alone.
    pub(crate) settings: Vec<(String, String)>,
    /// Where unqualified tables are.
    pub(crate) database: Option<String>,
    /// The format of a statement that names none.
    pub(crate) default_format: Option<String>,
    /// Who asks; `default` if nobody is named.
    pub(crate) user: Option<String>,
    /// Their password.
    pub(crate) password: Option<String>,
    /// The caller's name for this statement.
    pub(crate) query_id: Option<String>,
    /// Nothing may be written: the request is a GET.
    pub(crate) readonly: bool,
    /// The body comes in ClickHouse's compressed blocks.
    pub(crate) compressed_body: bool,
    /// Answer only once the statement has ended.
    pub(crate) wait_for_end: bool,
    /// `compress=1`.
    pub(crate) compress: bool,
    /// By which the statement is found while it runs, if it is to end with its client.
    pub(crate) mark: Option<String>,
}

impl Request {
    /// Reads address and headers.
    pub(crate) fn read(parts: &Parts) -> Result<Self, Exception> {
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
        let yes = || value == "1" || value.eq_ignore_ascii_case("true");
        match name {
            "query" => self.query.push_str(&value),
            "database" => self.database = Some(value),
            "default_format" => self.default_format = Some(value),
            "user" => self.user = Some(value),
            "password" => self.password = Some(value),
            "query_id" => self.query_id = Some(value),
            "compress" => self.compress = yes(),
            "decompress" => self.compressed_body = yes(),
            "wait_end_of_query" => self.wait_for_end = yes(),
            _ if REFUSED.contains(&name) => {
                let said = format!("The sandbox's ClickHouse has no sessions and roles, so no `{name}`");
                return Err(Exception::new(48, "NOT_IMPLEMENTED", said));
            }
            _ if IGNORED.contains(&name) => {}
            _ => match name.strip_prefix("param_") {
                Some(parameter) => self.parameters.push((parameter.to_owned(), value)),
                None => self.settings.push((name.to_owned(), value)),
            },
        }
        Ok(())
    }

    /// A part of a multipart body: the statement, or a parameter.
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

    /// Whether the statement is to end when its client hangs up: asked for, and granted to what writes nothing.
    pub(crate) fn ends_with_client(&self) -> bool {
        let set = |wanted: &str| {
            let found = self.settings.iter().rfind(|(name, _)| name == wanted);
            found.is_some_and(|(_, value)| value != "0" && value != "false")
        };
        set("cancel_http_readonly_queries_on_client_close") && (self.readonly || set("readonly"))
    }

    /// How the answer is to be encoded.
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
    let sent = headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Basic ")?;
    let plain = base64::engine::general_purpose::STANDARD.decode(sent).ok()?;
    let (user, password) = std::str::from_utf8(&plain).ok()?.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// The one account of a front.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    /// Its name.
    pub(crate) user: String,
    /// Its password; empty lets everybody in.
    pub(crate) password: String,
}

impl Account {
    /// Whether the request comes from this account.
    pub(crate) fn admit(&self, request: &Request) -> Result<(), Exception> {
        use subtle::ConstantTimeEq as _;
        let user = request.user.as_deref().unwrap_or("default");
        let password = request.password.as_deref().unwrap_or_default();
        if user == self.user && bool::from(password.as_bytes().ct_eq(self.password.as_bytes())) {
            return Ok(());
        }
        let said = format!(
            "{user}: Authentication failed: password is incorrect, or there is no user with such name."
        );
        Err(Exception::new(516, "AUTHENTICATION_FAILED", said))
    }
}
