//! `tools/call`.

use std::io::Write;

use axum::body::Bytes;
use domain::FieldError;
use serde::Deserialize;
use serde_json::{Map, Value};
use store::credentials::Caller;
use web::{Code, Problem};

use super::era::Era;
use super::gateway::{Client, OperationCall, Outcome};
use super::message::{Refusal, Request};
use super::server::Server;
use super::tools::{self, Class, Target};
use crate::catalog::Operation;

/// The argument that stands for the header `Idempotency-Key`, as the catalog names it.
const IDEMPOTENCY_KEY: &str = "idempotencyKey";

/// The parameters of `tools/call`.
#[derive(Deserialize)]
struct Params {
    name: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

/// The arguments of the tools that name an operation.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OperationArguments {
    operation: String,
    /// `arguments` is what models write most often instead.
    #[serde(default, alias = "arguments")]
    params: Option<Map<String, Value>>,
    #[serde(default)]
    idempotency_key: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    query: String,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribeArguments {
    operation: String,
}

/// What a call comes to.
enum Due<'a> {
    /// A request to the API.
    Call(OperationCall<'a>),
    /// The answer.
    Answer(Value),
}

/// Answers a `tools/call`.
///
/// # Errors
/// Only what is wrong with the message: no such tool, or arguments that are no object. What the API refuses is a result.
pub(super) async fn call(
    server: &Server,
    client: &Client,
    request: &Request,
    era: Era,
) -> Result<Bytes, Refusal> {
    let outcome = match prepare(server, &client.caller, request)? {
        Ok(Due::Answer(value)) => Ok(Outcome::of_value(&value)),
        Ok(Due::Call(call)) => server.gateway.call(client, call).await,
        Err(problem) => Err(problem),
    };
    match outcome {
        Ok(outcome) => Ok(write_result(&request.id, &outcome, era)),
        Err(problem) => Ok(refuse(client, request, problem, era).await),
    }
}

/// Answers a `tools/call` that the API refuses.
pub(super) async fn refuse(client: &Client, request: &Request, problem: Problem, era: Era) -> Bytes {
    let outcome = Outcome::of_problem(problem, &client.parts).await;
    write_result(&request.id, &outcome, era)
}

/// Writes the answer around the text of the outcome, which is JSON already and is copied without being parsed.
fn write_result(id: &Value, outcome: &Outcome, era: Era) -> Bytes {
    let mut message = Vec::with_capacity(outcome.text.len() * 5 / 2 + 256);
    let result_type = if era == Era::Modern { r#""resultType":"complete","# } else { "" };
    let start = r#""content":[{"type":"text","text":"#;
    // Writing to memory does not fail.
    let _written = write!(message, r#"{{"jsonrpc":"2.0","id":{id},"result":{{{result_type}{start}"#);
    let _written = serde_json::to_writer(&mut message, &outcome.text);
    message.extend_from_slice(b"}]");
    if outcome.is_json {
        message.extend_from_slice(br#","structuredContent":"#);
        message.extend_from_slice(outcome.text.as_bytes());
    }
    let _written = write!(message, r#","isError":{}}}}}"#, outcome.is_error);
    message.into()
}

/// Reads the parameters. Nothing waits here, so that few of them are in memory as values at a time.
fn prepare<'s>(
    server: &'s Server,
    caller: &Caller,
    request: &Request,
) -> Result<Result<Due<'s>, Problem>, Refusal> {
    let Params { name, arguments } = request.read()?;
    let arguments = arguments.unwrap_or_default();
    let Some(target) = server.tools.find(&name) else {
        let near = server.tools.nearest(&name).map(|id| format!("; did you mean {id}?"));
        let message = format!("unknown tool: {name}{}", near.unwrap_or_default());
        return Err(Refusal::params(message));
    };
    Ok(match target {
        Target::Search => search(server, caller, arguments),
        Target::Describe => read::<DescribeArguments>(arguments).and_then(|of| {
            find(server, &of.operation).map(|operation| Due::Answer(tools::describe(operation)))
        }),
        Target::Call(class) => read::<OperationArguments>(arguments).and_then(|of| {
            let operation = find(server, &of.operation)?;
            check_class(operation, class)?;
            let mut params = of.params.unwrap_or_default();
            if let Some(key) = of.idempotency_key {
                if class != Class::Write {
                    return Err(no_key(class));
                }
                params.insert(IDEMPOTENCY_KEY.to_owned(), Value::String(key));
            }
            call_of(server, operation, &params).map(Due::Call)
        }),
        Target::Operation(at) => match server.catalog.operations().get(at) {
            Some(operation) => call_of(server, operation, &arguments).map(Due::Call),
            None => Err(Problem::not_found("operation")),
        },
    })
}

fn search(server: &Server, caller: &Caller, arguments: Map<String, Value>) -> Result<Due<'static>, Problem> {
    let SearchArguments { query, limit } = read(arguments)?;
    Ok(Due::Answer(server.tools.search(caller.scopes, &query, limit)))
}

/// Reads the arguments of a tool that is no operation.
fn read<T: serde::de::DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Problem> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Problem::validation(vec![FieldError::new(
            "arguments",
            "schema",
            format!("invalid arguments: {error}"),
        )])
    })
}

fn find<'s>(server: &'s Server, name: &str) -> Result<&'s Operation, Problem> {
    let found = server.catalog.find(name).or_else(|| match server.tools.find(name)? {
        Target::Operation(at) => server.catalog.operations().get(at),
        _ => None,
    });
    found.ok_or_else(|| {
        let near = server.tools.nearest(name).map(|id| format!("did you mean {id}? "));
        Problem::new(Code::NotFound, format!("there is no operation {name}"))
            .hint(&format!("{}search_api finds operations", near.unwrap_or_default()))
    })
}

/// Checks that the tool is the one for the operation: its hints told the user what it may do.
fn check_class(operation: &Operation, class: Class) -> Result<(), Problem> {
    let actual = Class::of(operation);
    if actual == class {
        return Ok(());
    }
    let detail = format!("{} can't be called with {}", operation.id, class.tool());
    let error = FieldError::new("operation", "class", detail);
    Err(Problem::validation(vec![error]).hint(&format!("call it with {}", actual.tool())))
}

fn no_key(class: Class) -> Problem {
    let detail = format!("{} takes no {IDEMPOTENCY_KEY}: its calls may be repeated", class.tool());
    Problem::validation(vec![FieldError::new(IDEMPOTENCY_KEY, "unknown", detail)])
}

fn call_of<'s>(
    server: &Server,
    operation: &'s Operation,
    arguments: &Map<String, Value>,
) -> Result<OperationCall<'s>, Problem> {
    if !operation.served_here {
        let url = format!("{}{}", server.app.addresses.base(), operation.path);
        let detail = format!("{} is not served here", operation.id);
        let hint = format!("send it by HTTP: {} {url}", operation.method);
        return Err(Problem::new(Code::NotFound, detail).hint(&hint));
    }
    let parts = operation.request(arguments).map_err(|errors| {
        let hint = format!("describe_api with {{\"operation\": \"{}\"}} returns its schema", operation.id);
        Problem::validation(errors).hint(&hint)
    })?;
    let is_read = Class::of(operation) == Class::Read;
    Ok(OperationCall { route: &operation.path, parts, is_read })
}
