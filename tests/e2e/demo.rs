//! The demonstration: what it prints can be asked as it stands, and every answer has something in it.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{Answer, Client, System};
use http::{Method, StatusCode};

use crate::PROGRAM;

/// What must not be empty in the answer to each printed call, in their order.
const TOLD: [&[&str]; 10] = [
    &["/total", "/series/0/value", "/series/5/value", "/comparison/from"],
    &["/total", "/breakdown/0/value", "/breakdown/4/key"],
    // Where the machine has no file of locations, all countries are unknown.
    &["/total", "/breakdown/0/value"],
    &["/total", "/breakdown/0/value"],
    &["/total"],
    &["/activeVisitors"],
    &["/total", "/sessions/0/pageCount", "/sessions/0/pages/1/url", "/sessions/0/device"],
    &["/steps/0/count", "/steps/1/count", "/steps/2/count", "/overallRate"],
    &["/cohorts/0/total", "/cohorts/5/total", "/averageRetention/0", "/averageRetention/1"],
    &["/eventCount"],
];

#[tokio::test(flavor = "multi_thread")]
async fn every_call_that_the_demo_prints_is_answered_with_figures() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let done = Command::new(PROGRAM).args(["demo", "--dir"]).arg(system.folder()).output()?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    ensure!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    let client = system.client();
    let calls: Vec<&str> = said.lines().filter(|line| line.starts_with("curl ")).collect();
    ensure!(calls.len() == TOLD.len(), "{said}");
    for (call, told) in calls.into_iter().zip(TOLD) {
        let answer = make(&client, call).await?;
        let figures = answer.json();
        ensure!(answer.status == StatusCode::OK, "{call}: {}", answer.text());
        for place in told {
            let figure =
                figures.pointer(place).with_context(|| format!("{call}: no {place} in {figures}"))?;
            let is_empty = figure.as_f64() == Some(0.0) || figure.is_null() || figure == "";
            ensure!(!is_empty, "{call}: {place} is {figure} in {figures}");
        }
    }
    Ok(())
}

/// Makes a call as it was printed: `curl -s 'url' -H 'name: value' … -d 'body'`.
async fn make(client: &Client, call: &str) -> Result<Answer> {
    let words: Vec<(&str, &str)> = call
        .split_terminator('\'')
        .collect::<Vec<_>>()
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect();
    let of = |option: &'static str| {
        words.iter().filter(move |(before, _)| before.trim_end().ends_with(option)).map(|(_, word)| *word)
    };
    let url = of("curl -s").next().with_context(|| format!("no address in {call}"))?;
    let headers: Vec<(&str, &str)> = of("-H").filter_map(|header| header.split_once(": ")).collect();
    let body = of("-d").next();
    let method = if body.is_some() { Method::POST } else { Method::GET };
    client.send(method, url, &headers, body.unwrap_or_default().to_owned().into()).await
}
