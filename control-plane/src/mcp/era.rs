//! The two eras of the protocol. Until 2025-11-25 a client begins with `initialize`; since 2026-07-28 each request declares
//! its version, in a header and in `_meta`, and headers repeat what proxies need to route it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, StatusCode};
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::message::{Refusal, Request};

const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
/// Members of `_meta`.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The era of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// Versions with `initialize`.
    Legacy,
    /// Versions in which every request stands alone.
    Modern,
}

impl Era {
    /// Returns the status of a JSON-RPC error: 200 in the legacy era, where only the transport fails with others.
    pub(super) fn status(self, error: &ErrorData) -> StatusCode {
        match error.code {
            _ if self == Self::Legacy => StatusCode::OK,
            ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
            ErrorCode::INVALID_REQUEST => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        }
    }
}

/// The versions that this server speaks.
pub(super) fn supported() -> &'static [ProtocolVersion] {
    ProtocolVersion::KNOWN_VERSIONS
}

fn is_supported(version: &str) -> bool {
    supported().iter().any(|known| known.as_str() == version)
}

/// Versions are dates, so their texts sort by age.
fn is_modern(version: &str) -> bool {
    version >= ProtocolVersion::NO_INITIALIZE.as_str()
}

/// Returns the version of a session that the client begins with `initialize`.
pub(super) fn negotiate(requested: &str) -> ProtocolVersion {
    let known = supported().iter().find(|version| version.as_str() == requested && version.has_initialize());
    known.cloned().unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

/// The parameters that headers repeat. They are only looked at, not made into values: every request has them.
#[derive(Debug, Default, Deserialize)]
struct Declared<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, rename = "protocolVersion")]
    initialize_version: Option<&'a RawValue>,
}

/// The members of `_meta` that a request of the modern era needs.
#[derive(Debug, Default, Deserialize)]
struct DeclaredMeta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
}

impl<'a> Declared<'a> {
    /// Returns `_meta`, empty if it is absent or no object.
    fn meta(&self) -> DeclaredMeta<'a> {
        let meta = self.meta.filter(|meta| meta.get().starts_with('{'));
        meta.and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default()
    }
}

/// Returns a value that is a text.
fn text_of(value: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(value?.get()).ok()
}

/// Returns the era of a request, after checking its headers against its body. The version comes first: what else a
/// request needs depends on it.
pub(super) fn of_request(headers: &HeaderMap, request: &Request) -> Result<Era, Refusal> {
    let header = single(headers, VERSION_HEADER)?;
    let declared: Declared<'_> = match (request.read(), header) {
        (Ok(declared), _) => declared,
        (Err(refusal), None) => return Err(refusal),
        (Err(refusal), Some(header)) => {
            check_supported(header)?;
            return Err(if is_modern(header) {
                refusal.with_status(StatusCode::BAD_REQUEST)
            } else {
                refusal
            });
        }
    };
    let meta = declared.meta();
    let version = text_of(meta.version);
    let version = version.as_deref();
    if request.method == "initialize" && !version.is_some_and(is_modern) {
        return check_initialize(headers, header, &declared).map(|()| Era::Legacy);
    }
    match (header, version) {
        (Some(header), Some(version)) if header != version => {
            let detail =
                format!("the header MCP-Protocol-Version is {header}, but params._meta says {version}");
            return Err(mismatch(detail));
        }
        (Some(declared), _) | (None, Some(declared)) => check_supported(declared)?,
        (None, None) => {}
    }
    if header.is_none() && version.is_some() {
        return Err(mismatch("a version in params._meta requires the header MCP-Protocol-Version"));
    }
    if header.is_some_and(is_modern) {
        check_routing_headers(headers, &request.method, &declared)?;
    }
    let is_discover = request.method == "server/discover";
    let has_capabilities = meta.capabilities.is_some_and(|value| value.get().starts_with('{'));
    let missing = || {
        let absent = [(version.is_none(), VERSION), (!has_capabilities, CAPABILITIES)];
        let names: Vec<_> =
            absent.iter().filter(|(is_absent, _)| *is_absent).map(|(_, name)| *name).collect();
        Refusal::params(format!("params._meta lacks or has malformed required fields: {}", names.join(", ")))
            .with_status(StatusCode::BAD_REQUEST)
    };
    let Some(version) = version else {
        return if is_discover || header.is_some_and(is_modern) { Err(missing()) } else { Ok(Era::Legacy) };
    };
    if !is_modern(version) {
        return if is_discover && !has_capabilities { Err(missing()) } else { Ok(Era::Legacy) };
    }
    if has_capabilities { Ok(Era::Modern) } else { Err(missing()) }
}

/// Checks the headers of a notification.
pub(super) fn check_notification(headers: &HeaderMap, method: &str) -> Result<(), Refusal> {
    let Some(header) = single(headers, VERSION_HEADER)? else { return Ok(()) };
    check_supported(header)?;
    if is_modern(header) { check_routing_headers(headers, method, &Declared::default()) } else { Ok(()) }
}

/// The handshake may come without headers, but those it has must not contradict it.
fn check_initialize(
    headers: &HeaderMap,
    header: Option<&str>,
    declared: &Declared<'_>,
) -> Result<(), Refusal> {
    let Some(version) = text_of(declared.initialize_version) else {
        return Err(Refusal::params("params.protocolVersion must be a version, such as \"2025-11-25\""));
    };
    if header.is_some_and(|header| header != version) {
        let detail =
            format!("the header MCP-Protocol-Version differs from params.protocolVersion, {version}");
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, detail).with_status(StatusCode::BAD_REQUEST));
    }
    match single(headers, METHOD_HEADER)? {
        Some(method) if header.is_some_and(is_modern) && method != "initialize" => {
            Err(mismatch(format!("the header Mcp-Method is {method}, but the method is initialize")))
        }
        _ => Ok(()),
    }
}

fn check_supported(version: &str) -> Result<(), Refusal> {
    if is_supported(version) {
        return Ok(());
    }
    let message =
        format!("the protocol version {version} is not supported; data.supported lists those that are");
    let refusal = Refusal::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, message)
        .with_data(json!({ "requested": version, "supported": supported() }));
    Err(refusal.with_status(StatusCode::BAD_REQUEST))
}

/// Checks the headers by which proxies route a request without reading its body.
fn check_routing_headers(headers: &HeaderMap, method: &str, declared: &Declared<'_>) -> Result<(), Refusal> {
    match single(headers, METHOD_HEADER)? {
        None => return Err(mismatch("the header Mcp-Method is missing")),
        Some(header) if header != method => {
            return Err(mismatch(format!("the header Mcp-Method is {header}, but the method is {method}")));
        }
        Some(_) => {}
    }
    let name = match method {
        "tools/call" | "prompts/get" => declared.name,
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => declared.uri,
        _ => None,
    };
    let Some(name) = text_of(name) else { return Ok(()) };
    let Some(header) = single(headers, NAME_HEADER)? else {
        return Err(mismatch(format!("the header Mcp-Name is missing; {method} requires it")));
    };
    let decoded = decode(header).ok_or_else(|| mismatch("the header Mcp-Name is not valid Base64"))?;
    if decoded == name {
        return Ok(());
    }
    Err(mismatch(format!("the header Mcp-Name is {decoded}, but the body names {name}")))
}

/// Returns the text of a header. `=?base64?…?=` stands for text that can't be in one.
fn decode(header: &str) -> Option<String> {
    match header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => Some(header.to_owned()),
    }
}

/// Returns the value of a header that may occur once: a proxy could read another of two values than this server.
fn single<'h>(headers: &'h HeaderMap, name: &'static str) -> Result<Option<&'h str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(mismatch(format!("the header {name} occurs twice")));
    }
    value.to_str().map(Some).map_err(|_| mismatch(format!("the header {name} is not plain ASCII")))
}

fn mismatch(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::HEADER_MISMATCH, message).with_status(StatusCode::BAD_REQUEST)
}
