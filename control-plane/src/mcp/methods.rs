//! The methods of the protocol.

use axum::body::Bytes;
use http::Method;
use rmcp::model::{DiscoverResult, ErrorCode, ProtocolVersion, Resource};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::call::call;
use super::era::{Era, negotiate, supported};
use super::gateway::{Client, OperationCall};
use super::message::{Refusal, Request, write_answer};
use super::server::Server;
use super::tools::Tools;
use crate::catalog::RequestParts;

/// How long a client may keep a list: as long as a revoked key may still work.
const LIST_TTL_MS: u64 = 60_000;
const LLMS_TXT: &str = "/llms.txt";
const MARKDOWN: &str = "text/markdown";

/// What only the modern era has in its results.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hints {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'static str>,
}

impl Hints {
    /// A list of tools depends on the key, so no proxy may share it.
    fn of(era: Era) -> Self {
        let is_modern = era == Era::Modern;
        Self {
            result_type: is_modern.then_some("complete"),
            ttl_ms: is_modern.then_some(LIST_TTL_MS),
            cache_scope: is_modern.then_some("private"),
        }
    }
}

#[derive(Serialize)]
struct ToolList<'a> {
    tools: Vec<&'a RawValue>,
    #[serde(flatten)]
    hints: Hints,
}

/// A result with one member.
#[derive(Serialize)]
struct OneMember {
    #[serde(flatten)]
    member: Map<String, Value>,
    #[serde(flatten)]
    hints: Hints,
}

#[derive(Deserialize)]
struct InitializeParams {
    #[serde(rename = "protocolVersion")]
    version: String,
}

#[derive(Deserialize)]
struct PromptParams {
    name: String,
}

#[derive(Deserialize)]
struct ReadParams {
    uri: String,
}

/// Answers a request.
pub(super) async fn answer(
    server: &Server,
    client: &Client,
    request: &Request,
    era: Era,
) -> Result<Bytes, Refusal> {
    let id = &request.id;
    match request.method.as_str() {
        "tools/call" => call(server, client, request, era).await,
        "tools/list" => list_tools(server, client, request, era),
        "initialize" if era == Era::Legacy => {
            let InitializeParams { version } = request.read()?;
            write_answer(id, &server.config(negotiate(&version)))
        }
        // There are no log messages, so any level of them will do.
        "ping" | "logging/setLevel" if era == Era::Legacy => write_answer(id, &json!({})),
        "server/discover" => {
            let config = server.config(ProtocolVersion::LATEST);
            let discovered = DiscoverResult::from_server_info(supported().to_vec(), config);
            write_answer(id, &discovered.with_ttl_ms(LIST_TTL_MS))
        }
        "resources/list" => {
            let uri = llms_txt(server);
            let resource = Resource::new(uri, "llms.txt")
                .with_description("How to use this API, in one page.")
                .with_mime_type(MARKDOWN);
            write_answer(id, &one_member("resources", json!([resource]), era))
        }
        "resources/templates/list" => write_answer(id, &one_member("resourceTemplates", json!([]), era)),
        // Clients that list everything get an empty list.
        "prompts/list" => write_answer(id, &one_member("prompts", json!([]), era)),
        "prompts/get" => {
            let PromptParams { name } = request.read()?;
            Err(Refusal::params(format!("there is no prompt {name}, as this server has none")))
        }
        "resources/read" => read_resource(server, client, request, era).await,
        other => Err(Refusal::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {other}"))),
    }
}

fn one_member(name: &str, value: Value, era: Era) -> OneMember {
    OneMember { member: Map::from_iter([(name.to_owned(), value)]), hints: Hints::of(era) }
}

/// The address of the page that tells agents how to begin.
fn llms_txt(server: &Server) -> String {
    format!("{}{LLMS_TXT}", server.app.addresses.base())
}

fn list_tools(server: &Server, client: &Client, request: &Request, era: Era) -> Result<Bytes, Refusal> {
    let query = client.parts.uri.query().unwrap_or_default();
    let asked = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "toolsets");
    let asked = asked.map(|(_, names)| names.into_owned()).unwrap_or_default();
    let toolsets: Vec<&str> = asked.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let tools = server.tools.list(&toolsets, client.caller.scopes).map_err(|unknown| {
        Refusal::params(format!("there is no toolset {unknown}; toolsets are {}", Tools::toolsets()))
    })?;
    write_answer(&request.id, &ToolList { tools: tools.collect(), hints: Hints::of(era) })
}

async fn read_resource(
    server: &Server,
    client: &Client,
    request: &Request,
    era: Era,
) -> Result<Bytes, Refusal> {
    let ReadParams { uri } = request.read()?;
    let unknown = |uri: &str| {
        let code = match era {
            Era::Legacy => ErrorCode::RESOURCE_NOT_FOUND,
            Era::Modern => ErrorCode::INVALID_PARAMS,
        };
        Refusal::new(code, format!("there is no resource {uri}")).with_data(json!({ "uri": uri }))
    };
    if uri != llms_txt(server) {
        return Err(unknown(&uri));
    }
    let parts = RequestParts {
        method: Method::GET,
        path_and_query: LLMS_TXT.to_owned(),
        headers: vec![],
        body: None,
    };
    let page = OperationCall { route: LLMS_TXT, parts, is_read: true };
    let read = server.gateway.call(client, page).await;
    let page = read.ok().filter(|page| !page.is_error).ok_or_else(|| unknown(&uri))?;
    let contents = json!([{ "uri": uri, "mimeType": MARKDOWN, "text": page.text }]);
    write_answer(&request.id, &one_member("contents", contents, era))
}
