//! Four official clients, in both eras of the protocol: each lists the tools, searches, describes, launches a site, reads its
//! status and gets a refusal.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{System, run_over, until};
use serde_json::{Value, json};

use crate::{PACKAGES, trial};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// A client in one of its modes.
#[derive(Debug, Clone, Copy)]
struct Run {
    script: &'static str,
    library: &'static str,
    mode: &'static str,
    /// The version on which client and server agree.
    version: &'static str,
}

const RUNS: [Run; 8] = [
    Run { script: "client.mjs", library: "sdk", mode: "legacy", version: LEGACY },
    Run { script: "client.mjs", library: "client", mode: "legacy", version: LEGACY },
    Run { script: "client.mjs", library: "client", mode: "auto", version: MODERN },
    Run { script: "client.mjs", library: "client", mode: MODERN, version: MODERN },
    Run { script: "client.py", library: "mcp", mode: "legacy", version: LEGACY },
    Run { script: "client.py", library: "mcp", mode: "auto", version: MODERN },
    Run { script: "client.py", library: "fastmcp", mode: "legacy", version: LEGACY },
    Run { script: "client.py", library: "fastmcp", mode: "auto", version: MODERN },
];

#[tokio::test(flavor = "multi_thread")]
async fn official_clients_of_both_eras_launch_a_site_from_the_endpoint_alone() -> Result<()> {
    let system = trial::start().await?;
    for run in RUNS {
        follow(&system, run).await.with_context(|| format!("{run:?}"))?;
    }
    Ok(())
}

async fn follow(system: &System, run: Run) -> Result<()> {
    let title = format!("By {} in mode {}", run.library, run.mode);
    let input = json!({
        "library": run.library,
        "mode": run.mode,
        "url": trial::endpoint(system),
        "key": trial::find_key(system).await?,
        "slug": "launched",
        "title": title,
    });
    let told = tokio::task::spawn_blocking(move || transcript(run, &input)).await??;
    check_introduction(&told, run)?;
    check_answers(&told)?;
    let url = told["launched"]["structuredContent"]["pages"][0]["subdomainUrl"].as_str().context("no URL")?;
    let client = system.client();
    until("the page to be live", async || client.get(url).await.ok()?.text().contains(&title).then_some(()))
        .await
}

/// Runs the client and returns what it was told.
fn transcript(run: Run, input: &Value) -> Result<Value> {
    let mut command = if run.script.ends_with(".py") {
        let folder = PACKAGES.python()?;
        let mut command = Command::new(folder.join("bin/python"));
        command.arg(folder.join(run.script));
        command
    } else {
        let mut command = Command::new("node");
        command.arg(PACKAGES.node()?.join(run.script));
        command
    };
    let output = run_over(&mut command, input.to_string().as_bytes())?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("the transcript is not JSON")
}

fn check_introduction(told: &Value, run: Run) -> Result<()> {
    ensure!(told["version"] == run.version, "{}", told["version"]);
    ensure!(told["server"]["name"] == "web-runtime", "{}", told["server"]);
    ensure!(told["instructions"].as_str().is_some_and(|text| text.contains("search_api")), "no instructions");
    ensure!(told["manual"].as_str().is_some_and(|text| text.contains("/api/trial")), "{}", told["manual"]);
    let tools = told["tools"].as_array().context("no tools")?;
    ensure!((10..=25).contains(&tools.len()), "{} tools", tools.len());
    for name in ["search_api", "describe_api", "launch_create", "status_read", "pages_create"] {
        ensure!(tools.iter().any(|tool| tool["name"] == name), "no {name} in {tools:?}");
    }
    for tool in tools {
        ensure!(tool["inputSchema"]["type"] == "object", "{tool}");
        ensure!(tool["annotations"]["readOnlyHint"].is_boolean(), "{tool}");
        let is_model_name = |name: &str| {
            name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        ensure!(tool["name"].as_str().is_some_and(is_model_name), "{tool}");
    }
    Ok(())
}

fn check_answers(told: &Value) -> Result<()> {
    ensure!(told["operation"] == "launch.create", "the search found {}", told["operation"]);
    let described = content(&told["described"])?;
    ensure!(described["inputSchema"]["properties"]["pages"]["type"] == "array", "{described}");
    let launched = content(&told["launched"])?;
    ensure!(launched["pages"][0]["slug"] == "launched", "{launched}");
    let next = launched["_next"].as_array().context("no _next")?;
    ensure!((1..=5).contains(&next.len()), "{launched}");
    let status = content(&told["status"])?;
    ensure!(status["pages"]["total"] == 1 && status["pages"]["newest"][0]["slug"] == "launched", "{status}");
    ensure!(status["analyticsSites"]["total"] == 1, "{status}");
    let account = content(&told["account"])?;
    ensure!(account["id"].is_string() && account["email"].is_null(), "{account}");
    let pages = content(&told["pages"])?;
    ensure!(pages["nextCursor"].is_null() && pages.to_string().contains("launched"), "{pages}");
    let plans = content(&told["unlisted"])?;
    ensure!(plans["plans"].is_array(), "{plans}");
    let refused = &told["refused"];
    ensure!(refused["isError"] == true, "{refused}");
    ensure!(refused["structuredContent"]["code"] == "slug_taken", "{refused}");
    ensure!(refused["structuredContent"]["status"] == 409, "{refused}");
    // An unknown tool is an error of the message, not a result.
    ensure!(told["unknown"] == json!({"code": -32602}), "{}", told["unknown"]);
    Ok(())
}

/// The answer of a call that succeeded.
fn content(result: &Value) -> Result<&Value> {
    ensure!(result["isError"] != true, "{result}");
    ensure!(result["structuredContent"].is_object(), "{result}");
    Ok(&result["structuredContent"])
}
