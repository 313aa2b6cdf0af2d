//! `webruntime check`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use operations::checks::{self, Finding, Status};
use service::config::ExposeSecret as _;

use super::context::Context;
use crate::settings::duration;

/// Shown under `check --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  webruntime check                 one line for each check, with what to do about it
  webruntime check --json          the same for programs
  webruntime check --wait 60s      … once the databases accept connections

The exit code is 1 if a check failed, and 0 if there are warnings at most. Run it after an upgrade, after a restored backup,
and with the settings and on a machine that the services have: then it finds what they would find. Whether the edge has TLS it
can tell only from the edge's settings, listen.https and http.trusted_proxies: without both there is a warning.";

/// Options of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// How long to wait until both databases accept connections, such as 60s
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    wait: Option<Duration>,
}

/// Executes the command.
pub(crate) async fn run(context: &Context, args: &Check) -> Result<ExitCode> {
    context.wait(args.wait).await?;
    print(&find(context).await, args.json)
}

/// Prints the settings that no program of the installation starts with.
pub(crate) fn print_insecure(problems: Vec<String>, args: &Check) -> Result<ExitCode> {
    let advice = "no service starts with this setting; the other checks run once it is changed";
    let findings: Vec<Finding> =
        problems.into_iter().map(|problem| Finding::failed("settings", problem, advice)).collect();
    print(&findings, args.json)
}

fn print(findings: &[Finding], json: bool) -> Result<ExitCode> {
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    let (warnings, failed) = (count(Status::Warning), count(Status::Failed));
    if json {
        println!("{}", serde_json::to_string_pretty(findings)?);
    } else {
        for finding in findings {
            println!("{finding}");
        }
        println!("\n{} checks, {warnings} warnings, {failed} failed", findings.len());
    }
    Ok(if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn find(context: &Context) -> Vec<Finding> {
    let Context { db, warehouse, settings, clock, rng, .. } = context;
    let (postgres, clickhouse, redis, blobs) = tokio::join!(
        checks::check_postgres(db, clock),
        checks::check_clickhouse(warehouse),
        checks::check_redis(&settings.redis),
        checks::check_blob_store(&settings.blobs, rng),
    );
    let is_up = |findings: &[Finding]| findings.iter().any(|finding| finding.status == Status::Ok);
    let (has_postgres, has_clickhouse) = (is_up(&postgres), is_up(&clickhouse));
    let advice = "see the commented defaults: webruntime --print-config";
    let warnings = settings.warnings.iter().map(|warning| Finding::warning("settings", warning, advice));
    let mut findings: Vec<Finding> = warnings.collect();
    if settings.lacks_tls {
        let detail = "the edge's TLS was not checked: these settings have neither `listen.https` nor `http.trusted_proxies`";
        let advice = "run this with the edge's settings too; an edge beyond localhost needs one of the two";
        findings.push(Finding::warning("settings.tls", detail, advice));
    }
    findings.extend([postgres, clickhouse, redis].into_iter().flatten());
    findings.push(checks::check_edges(&settings.blobs, settings.http.edges).unwrap_or(blobs));
    if has_postgres && has_clickhouse {
        findings.push(checks::check_schema(db, warehouse).await);
    }
    if has_postgres {
        let setting = settings.secrets.master_key.expose_secret();
        findings.extend(checks::check_master_keys(db, setting).await);
    }
    findings.push(checks::check_pepper(settings.secrets.key_pepper.expose_secret()));
    findings
}
