//! The calls that `demo` prints work as printed, and every response contains figures.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{Client, Response, System};
use http::{Method, StatusCode};

use crate::PROGRAM;

/// For each printed call, the JSON pointers to values that must not be empty.
const NOT_EMPTY: [&[&str]; 11] = [
    &["/total", "/series/0/value", "/series/5/value", "/comparison/from"],
    &["/total", "/breakdown/0/value", "/breakdown/4/key"],
    // Without a location database on this machine, all countries are unknown.
    &["/total", "/breakdown/0/value"],
    &["/total", "/breakdown/0/value"],
    &["/total"],
    &["/activeVisitors"],
    &["/total", "/sessions/0/pageCount", "/sessions/0/pages/1/url", "/sessions/0/device"],
    &["/steps/0/count", "/steps/1/count", "/steps/2/count", "/overallRate"],
    &["/visits", "/ended", "/nextPages/0/visits"],
    &["/cohorts/0/total", "/cohorts/5/total", "/averageRetention/0", "/averageRetention/1"],
    &["/eventCount"],
];

#[tokio::test(flavor = "multi_thread")]
async fn every_call_printed_by_the_demo_returns_figures() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let done = Command::new(PROGRAM).args(["demo", "--dir"]).arg(system.folder()).output()?;
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    ensure!(done.status.success(), "{output}{}", String::from_utf8_lossy(&done.stderr));
    let client = system.client();
    let calls: Vec<&str> = output.lines().filter(|line| line.starts_with("curl ")).collect();
    ensure!(calls.len() == NOT_EMPTY.len(), "{output}");
    for (call, pointers) in calls.into_iter().zip(NOT_EMPTY) {
        let answer = send(&client, call).await?;
        let figures = answer.json();
        ensure!(answer.status == StatusCode::OK, "{call}: {}", answer.text());
        for pointer in pointers {
            let figure =
                figures.pointer(pointer).with_context(|| format!("{call}: no {pointer} in {figures}"))?;
            let is_empty = figure.as_f64() == Some(0.0) || figure.is_null() || figure == "";
            ensure!(!is_empty, "{call}: {pointer} is {figure} in {figures}");
        }
    }
    Ok(())
}

/// Sends a request as printed: `curl -s 'url' -H 'name: value' … -d 'body'`.
async fn send(client: &Client, call: &str) -> Result<Response> {
    let words: Vec<(&str, &str)> = call
        .split_terminator('\'')
        .collect::<Vec<_>>()
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect();
    let values_of = |option: &'static str| {
        words.iter().filter(move |(before, _)| before.trim_end().ends_with(option)).map(|(_, word)| *word)
    };
    let url = values_of("curl -s").next().with_context(|| format!("no URL in {call}"))?;
    let headers: Vec<(&str, &str)> = values_of("-H").filter_map(|header| header.split_once(": ")).collect();
    let body = values_of("-d").next();
    let method = if body.is_some() { Method::POST } else { Method::GET };
    client.send(method, url, &headers, body.unwrap_or_default().to_owned().into()).await
}
