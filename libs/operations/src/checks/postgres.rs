//! Postgres: reachable, recent, writable, with free connections, and its clock.

use anyhow::Result;
use chrono::TimeDelta;
use service::Clock;
use store::{Db, ServerStatus};

use super::finding::Finding;

/// The oldest release that the statements run on.
const MIN_VERSION: i32 = 14;
/// The release that the images and most tests use.
const TESTED_VERSION: i32 = 18;
/// Fewer free connections than one edge or control plane opens.
const MIN_FREE_CONNECTIONS: i64 = 30;
/// Services follow Postgres' clock; signatures of S3 requests and checks of certificates use the machine's.
const MAX_SKEW: TimeDelta = TimeDelta::seconds(2);
const BROKEN_SKEW: TimeDelta = TimeDelta::seconds(60);

/// Checks the server. Later checks of Postgres make no sense if the first finding failed.
pub async fn check_postgres(db: &Db, clock: &Clock) -> Vec<Finding> {
    if let Err(error) = store::try_connect(db).await {
        let advice = "check store.url, store.password and that this machine may connect: the services use the same settings";
        return vec![Finding::failed("postgres", error.to_string(), advice)];
    }
    let mut findings = vec![Finding::ok("postgres", "reachable")];
    match read(db, clock).await {
        Ok((status, skew)) => findings.extend(of_status(&status).into_iter().chain([of_skew(skew)])),
        Err(error) => {
            let advice = "the statements of this check need no privileges; look into the log of Postgres";
            findings.push(Finding::failed("postgres.status", format!("{error:#}"), advice));
        }
    }
    findings
}

/// Returns the status and how far Postgres' clock is ahead of this machine's.
async fn read(db: &Db, clock: &Clock) -> Result<(ServerStatus, TimeDelta)> {
    let mut conn = store::acquire(db).await?;
    let status = store::read_server_status(&mut conn).await?;
    let before = clock.now();
    let shown = store::read_clock(&mut conn).await?;
    let after = clock.now();
    // Postgres read its clock at some time between the two.
    Ok((status, if shown < before { shown - before } else { (shown - after).max(TimeDelta::zero()) }))
}

fn of_status(status: &ServerStatus) -> Vec<Finding> {
    let mut findings = Vec::new();
    let version = status.version.as_str();
    findings.push(if status.major_version < MIN_VERSION {
        let advice = format!("use Postgres {TESTED_VERSION}; {MIN_VERSION} is the oldest that works");
        Finding::failed("postgres.version", version, advice)
    } else if status.major_version < TESTED_VERSION {
        let advice = format!("it works; the images use {TESTED_VERSION}. Raise the major version on its own, not within an upgrade");
        Finding::warning("postgres.version", version, advice)
    } else {
        Finding::ok("postgres.version", version)
    });
    if status.is_read_only {
        let advice = "store.url must lead to the primary; behind a proxy, to its port for writes";
        findings.push(Finding::failed("postgres.writable", "this server accepts no writes", advice));
    }
    if status.encoding != "UTF8" {
        let advice = "create the database anew with encoding UTF8";
        findings.push(Finding::failed("postgres.encoding", status.encoding.clone(), advice));
    }
    let free = status.max_connections - status.open_connections;
    let detail = format!("{free} of {} are free", status.max_connections);
    findings.push(if free < MIN_FREE_CONNECTIONS {
        let advice = "raise max_connections, or lower store.max_connections of the services: an edge opens 35, a control plane \
                      20, a job-runner 22, a collector 9";
        Finding::warning("postgres.connections", detail, advice)
    } else {
        Finding::ok("postgres.connections", detail)
    });
    findings
}

fn of_skew(skew: TimeDelta) -> Finding {
    #[expect(clippy::cast_precision_loss, reason = "seconds for people")]
    let seconds = skew.num_milliseconds() as f64 / 1000.0;
    let detail = format!("Postgres' clock is {seconds:+.1} s from this machine's");
    let advice = "run an NTP client on every machine";
    match skew.abs() {
        skew if skew > BROKEN_SKEW => Finding::failed("clock", detail, advice),
        skew if skew > MAX_SKEW => Finding::warning("clock", detail, advice),
        _ => Finding::ok("clock", "within two seconds of Postgres'"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    fn status() -> ServerStatus {
        ServerStatus {
            version: "18.1".to_owned(),
            major_version: 18,
            is_read_only: false,
            max_connections: 297,
            open_connections: 40,
            encoding: "UTF8".to_owned(),
        }
    }

    fn worst(status: &ServerStatus) -> Status {
        of_status(status).iter().map(|finding| finding.status).max().unwrap()
    }

    #[test]
    fn old_read_only_and_full_servers_are_found() {
        assert_eq!(worst(&status()), Status::Ok);
        assert_eq!(worst(&ServerStatus { major_version: 13, ..status() }), Status::Failed);
        assert_eq!(worst(&ServerStatus { major_version: 15, ..status() }), Status::Warning);
        assert_eq!(worst(&ServerStatus { is_read_only: true, ..status() }), Status::Failed);
        assert_eq!(worst(&ServerStatus { encoding: "SQL_ASCII".to_owned(), ..status() }), Status::Failed);
        assert_eq!(worst(&ServerStatus { open_connections: 290, ..status() }), Status::Warning);
    }

    #[test]
    fn a_clock_is_wrong_in_both_directions() {
        for (seconds, expected) in [
            (0, Status::Ok),
            (2, Status::Ok),
            (-3, Status::Warning),
            (61, Status::Failed),
            (-61, Status::Failed),
        ] {
            assert_eq!(of_skew(TimeDelta::seconds(seconds)).status, expected, "{seconds}");
        }
    }
}
