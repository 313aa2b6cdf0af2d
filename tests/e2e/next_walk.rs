//! An agent that knows only the base URL follows the first suggestion of each response, and ends with a working site.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use harness::{Client, Receiver, System, until};
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::PROGRAM;

/// Steps of the walk, without the trial and the reads of the status.
const STEPS: usize = 12;

/// The marked address in a suggested webhook, the one value that is replaced.
const PLACEHOLDER: &str = "https://example.com/replace-me";

/// The agent: its client, the document it reads, and what it has done.
struct Agent {
    base: String,
    client: Client,
    document: Value,
    done: Vec<(String, Value)>,
}

impl Agent {
    async fn get(&self, path: &str) -> Result<Value> {
        let response = self.client.get(&format!("{}{path}", self.base)).await?;
        ensure!(response.status == StatusCode::OK, "GET {path}: {} {}", response.status, response.text());
        Ok(response.json())
    }

    /// The method, the path and the operation of a tool.
    fn operation(&self, tool: &str) -> Result<(Method, &str, &Value)> {
        for (path, item) in self.document["paths"].as_object().context("no paths")? {
            for (method, operation) in item.as_object().context("no operations")? {
                if operation["operationId"] == tool {
                    return Ok((method.to_uppercase().parse()?, path, operation));
                }
            }
        }
        bail!("the document has no operation {tool}")
    }

    /// Calls a tool as an agent would: params of the path and the query by name, the others as the body.
    async fn call(&mut self, tool: &str, params: &Value) -> Result<Value> {
        let (method, path, operation) = self.operation(tool)?;
        let (mut path, mut query) = (path.to_owned(), Vec::new());
        let mut body: Map<String, Value> = params.as_object().context("params are no object")?.clone();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().context("a parameter without a name")?;
            if parameter["in"] == "header" {
                continue;
            }
            let Some(value) = body.remove(name) else { continue };
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match parameter["in"].as_str() {
                Some("path") => path = path.replace(&format!("{{{name}}}"), &value),
                _ => query.push(format!("{name}={value}")),
            }
        }
        ensure!(!path.contains('{'), "{tool} lacks a parameter of {path}: {params}");
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        let url = format!("{}{path}{query}", self.base);
        ensure!(method != Method::GET || body.is_empty(), "{tool} has unknown params: {params}");
        let response = match method {
            Method::GET => self.client.get(&url).await?,
            method => self.client.json(method, &url, &Value::Object(body)).await?,
        };
        let (status, text) = (response.status, response.text());
        ensure!(status.is_success(), "{tool} {params}: {status} {text}\nbefore it: {:#?}", self.done);
        Ok(response.json())
    }
}

fn first_suggestion(response: &Value) -> Option<(String, Value)> {
    let suggestions = response["_next"].as_array()?;
    assert!(suggestions.len() <= 5, "{response}");
    let first = suggestions.first()?;
    Some((first["tool"].as_str()?.to_owned(), first["params"].clone()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_suggestions_lead_from_a_trial_to_a_working_site() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let base = system.file.base_url.clone();
    let mut client = system.client();
    let trial = client.retry_until_ok(Method::POST, &format!("{base}/api/trial"), &Value::Null).await?;
    client.key = Some(trial["key"].as_str().context("no key")?.to_owned());
    let receiver = Receiver::listen(0).await?;
    let mut agent = Agent { base, client, document: Value::Null, done: Vec::new() };
    agent.document = agent.get("/api/openapi.json").await?;

    let mut response = trial;
    for _ in 0..STEPS {
        let (tool, params) = match first_suggestion(&response) {
            Some(next) => next,
            None => {
                let status = agent.get("/api/status").await?;
                first_suggestion(&status).with_context(|| format!("the status suggests nothing: {status}"))?
            }
        };
        ensure!(!agent.done.contains(&(tool.clone(), params.clone())), "{tool} {params} comes twice");
        let mut sent = params.clone();
        if tool == "webhooks.create" {
            ensure!(params["url"] == PLACEHOLDER, "{params}");
            sent["url"] = json!(receiver.url);
        }
        response = agent.call(&tool, &sent).await?;
        agent.done.push((tool, params));
    }
    let tools: BTreeSet<&str> = agent.done.iter().map(|(tool, _)| tool.as_str()).collect();
    ensure!(tools.len() >= 8, "only {tools:?}");

    let pages = agent.get("/api/pages").await?;
    let url = pages["pages"][0]["subdomainUrl"].as_str().context("no page")?;
    until("the page to be served", async || {
        (agent.client.get(url).await.ok()?.status == StatusCode::OK).then_some(())
    })
    .await?;
    let forms = agent.get("/api/forms").await?;
    let form_id = forms["forms"][0]["id"].as_str().context("no form")?;
    let submissions = agent.get(&format!("/api/forms/{form_id}/submissions")).await?;
    let submissions = submissions["submissions"].as_array().context("no submissions")?;
    ensure!(submissions.len() == 1, "{submissions:?}");
    let webhooks = agent.get("/api/webhooks").await?;
    ensure!(webhooks["webhooks"][0]["isActive"] == true, "{webhooks}");
    let sites = agent.get("/api/analytics/sites").await?;
    ensure!(sites["sites"][0]["subdomainId"].is_string(), "{sites}");
    let submission_id = submissions[0]["id"].as_str().context("no id")?.to_owned();
    until("the submission to be delivered", async || {
        receiver.received().iter().any(|delivery| delivery.submission_id() == submission_id).then_some(())
    })
    .await
}
