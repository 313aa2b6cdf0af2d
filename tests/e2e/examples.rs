//! Every example of `/api/schema`, played in its order on a fresh account of the plan Pro: a program that reads nothing
//! but the schema calls every endpoint.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use harness::{Client, Response, System, until};
use http::Method;
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::PROGRAM;

/// No worker has to end what these start: the examples go on with it.
const SETTINGS: [&str; 9] = [
    "automations.test_timeout=0s",
    "webhooks.test_timeout=0s",
    "domains.recheck_after=0s",
    // A session can be had without a provider.
    "signin.local=true",
    // GitHub's protocol has no discovery, so the redirect needs no network.
    "signin.providers.google.kind=github",
    "signin.providers.google.client_id=example",
    "signin.providers.google.client_secret=example",
    "signin.providers.github.client_id=example",
    "signin.providers.github.client_secret=example",
];

/// A reader of the schema, with the values of earlier answers.
struct Player {
    client: Client,
    base: String,
    /// By operation.
    endpoints: BTreeMap<String, Value>,
    /// The output schemas that MCP lists, by operation with `_` for the dot.
    outputs: BTreeMap<String, Validator>,
    values: BTreeMap<String, String>,
    /// The cookie of a session.
    cookie: OnceLock<String>,
}

impl Player {
    /// Calls the example of an operation, after those that it repeats.
    async fn play(&mut self, operation: &str) -> Result<()> {
        let endpoint = self.endpoints.get(operation).context("no such operation")?.clone();
        let example = &endpoint["example"];
        for first in example["first"].as_array().into_iter().flatten() {
            Box::pin(self.play(first.as_str().context("an id")?)).await?;
        }
        let answer = self.call(&endpoint).await?;
        let body = answer.json();
        let statuses = endpoint["statuses"].as_array().context("no statuses")?;
        let is_expected = statuses.contains(&json!(answer.status.as_u16()));
        ensure!(is_expected, "{operation}: {} {}, not {statuses:?}", answer.status, answer.text());
        // An official client of MCP fails where an answer does not fit.
        if let Some(output) = self.outputs.get(&operation.replace('.', "_")) {
            output.validate(&body).map_err(|error| anyhow::anyhow!("{operation}: {error}: {body}"))?;
        }
        for (name, pointer) in example["keep"].as_object().into_iter().flatten() {
            let pointer = pointer.as_str().context("a pointer")?;
            let value = body.pointer(pointer).and_then(Value::as_str);
            let value = value.with_context(|| format!("{operation}: no {pointer} in {body}"))?;
            self.values.insert(name.clone(), value.to_owned());
        }
        if let Some(upload) = example["upload"].as_str() {
            self.upload(&body, upload).await.with_context(|| format!("{operation}: {body}"))?;
        }
        Ok(())
    }

    async fn call(&self, endpoint: &Value) -> Result<Response> {
        let params = self.filled(&endpoint["example"]["params"])?;
        let (mut path, mut query) = (endpoint["path"].as_str().context("a path")?.to_owned(), String::new());
        let mut body = json!({});
        for (name, value) in params.as_object().context("an object")? {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let parameters = endpoint["parameters"].as_array().into_iter().flatten();
            match parameters.into_iter().find(|one| one["name"] == **name).map(|one| &one["in"]) {
                Some(place) if place == "path" => path = path.replace(&format!("{{{name}}}"), &text),
                Some(_) => query += &format!("&{name}={text}"),
                None => body[name] = value.clone(),
            }
        }
        let url = format!("{}{path}?{}", self.base, query.trim_start_matches('&'));
        let method: Method = endpoint["method"].as_str().context("a method")?.parse()?;
        let mut client = self.client.clone();
        if endpoint["auth"] == "none" {
            client.key = None;
        }
        if operation_of(endpoint).starts_with("sessions.") {
            // A key has no sessions.
            client.key = None;
            let headers = [("cookie", self.session().await?), ("origin", self.base.clone())];
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let answer = client.send(method.clone(), &url, &headers, Bytes::new()).await;
            return answer.with_context(|| format!("{method} {url}"));
        }
        let has_body = endpoint["request"].is_object() && body != json!({});
        // Once: a repeated call would hide a first one that failed, and create twice.
        let answer = match has_body {
            true => client.json(method.clone(), &url, &body).await,
            false => client.send(method.clone(), &url, &[], Bytes::new()).await,
        };
        answer.with_context(|| format!("{method} {url}"))
    }

    /// Signs in with the page of local runs. Returns the cookie, the same for all calls.
    async fn session(&self) -> Result<String> {
        if let Some(cookie) = self.cookie.get() {
            return Ok(cookie.clone());
        }
        let mut client = self.client.clone();
        client.key = None;
        let headers = [("content-type", "application/x-www-form-urlencoded"), ("origin", self.base.as_str())];
        let form = Bytes::from_static(b"email=ada%40example.com");
        let url = format!("{}/login/local", self.base);
        let signed_in = client.send(Method::POST, &url, &headers, form).await?;
        let cookie = signed_in.header("set-cookie").split(';').next().unwrap_or_default().to_owned();
        ensure!(cookie.contains("session="), "{} {}", signed_in.status, signed_in.text());
        Ok(self.cookie.get_or_init(|| cookie).clone())
    }

    /// Replaces the placeholders in a value.
    fn filled(&self, params: &Value) -> Result<Value> {
        let mut text = params.to_string();
        for (name, value) in self.values.iter().rev() {
            text = text.replace(name, value);
        }
        let is_name =
            |(at, _): (usize, &str)| text[at + 1..].starts_with(|char: char| char.is_ascii_alphanumeric());
        ensure!(!text.match_indices('$').any(is_name), "a placeholder has no value: {text}");
        Ok(serde_json::from_str(&text)?)
    }

    async fn upload(&self, answer: &Value, bytes: &str) -> Result<()> {
        let headers = answer["uploadHeaders"].as_object().context("no uploadHeaders")?;
        let headers: Vec<(&str, &str)> =
            headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect();
        let url = answer["uploadUrl"].as_str().context("no uploadUrl")?;
        let mut client = self.client.clone();
        client.key = None;
        let put = client.send(Method::PUT, url, &headers, decoded(bytes)?.into()).await?;
        ensure!(put.status.is_success(), "{} {}", put.status, put.text());
        Ok(())
    }
}

fn operation_of(endpoint: &Value) -> &str {
    endpoint["operation"].as_str().unwrap_or_default()
}

/// Returns the output schemas that the tools of MCP list.
async fn output_schemas(client: &Client, base: &str) -> Result<BTreeMap<String, Validator>> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let url = format!("{base}/api/mcp?toolsets=all");
    let answer = client.json(Method::POST, &url, &message).await?.json();
    let mut schemas = BTreeMap::new();
    for tool in answer["result"]["tools"].as_array().with_context(|| answer.to_string())? {
        if let Some(schema) = tool.get("outputSchema") {
            let name = tool["name"].as_str().context("no name")?;
            schemas.insert(name.to_owned(), jsonschema::validator_for(schema)?);
        }
    }
    Ok(schemas)
}

/// Decodes base64 as a shell would.
fn decoded(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for char in text.bytes().filter(|char| *char != b'=') {
        let value = match char {
            b'A'..=b'Z' => char - b'A',
            b'a'..=b'z' => char - b'a' + 26,
            b'0'..=b'9' => char - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => bail!("not base64: {text}"),
        };
        (bits, count) = ((bits << 6) | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push(((bits >> count) & 0xff) as u8);
        }
    }
    Ok(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_of_the_schema_runs_in_order_on_a_fresh_account() -> Result<()> {
    let system = System::start(PROGRAM, false, &SETTINGS).await?;
    let base = system.file.base_url.clone();
    let mut client = system.client();
    let trial = client.retry_until_ok(Method::POST, &format!("{base}/api/trial"), &Value::Null).await?;
    client.key = Some(trial["key"].as_str().context("no key")?.to_owned());
    let account = client.get(&format!("{base}/api/account")).await?.json();
    let id = account["id"].as_str().context("no id")?;
    let done =
        Command::new(PROGRAM).args(["admin", "plan", id, "pro", "--dir"]).arg(system.folder()).output()?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    until("the plan to take effect", async || {
        let answer = client.get(&format!("{base}/api/account")).await.ok()?;
        (answer.json()["plan"] == "pro").then_some(())
    })
    .await?;

    let schema = client.get(&format!("{base}/api/schema")).await?.json();
    let all =
        ["endpoints", "extensions"].map(|name| schema[name].as_array().cloned().unwrap_or_default()).concat();
    let mut order: Vec<(i64, String)> = Vec::new();
    for endpoint in &all {
        let id = endpoint["operation"].as_str().context("no operation")?;
        let step = endpoint["example"]["step"].as_i64().with_context(|| format!("{id} has no example"))?;
        order.push((step, id.to_owned()));
    }
    order.sort();
    ensure!(order.len() > 100, "only {} examples", order.len());
    let endpoints = order.iter().map(|(_, id)| id.clone());
    let find =
        |id: &String| all.iter().find(|endpoint| endpoint["operation"] == **id).cloned().unwrap_or_default();
    let endpoints = endpoints.map(|id| (id.clone(), find(&id))).collect();
    let unique = ("$unique".to_owned(), format!("x{}", system.file.pid));
    let outputs = output_schemas(&client, &base).await?;
    ensure!(outputs.len() > 50, "only {} output schemas", outputs.len());
    let mut player = Player {
        client,
        base,
        endpoints,
        outputs,
        values: BTreeMap::from([unique]),
        cookie: OnceLock::new(),
    };
    let mut failed = Vec::new();
    for (step, id) in order {
        if let Err(error) = player.play(&id).await {
            failed.push(format!("step {step}: {error:#}"));
        }
    }
    ensure!(failed.is_empty(), "{} examples failed:\n{}", failed.len(), failed.join("\n"));
    Ok(())
}
