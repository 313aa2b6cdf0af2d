//! Redis: reachable, recent and writable.

use std::time::Duration;

use redis_connection::{Primary, ServerInfo};

use super::finding::Finding;

/// The oldest release that the scripts run on.
const MIN_VERSION: [u32; 2] = [6, 2];
const TIMEOUT: Duration = Duration::from_secs(5);

/// Checks the server.
pub async fn check_redis(config: &cache::Config) -> Vec<Finding> {
    let info = async { redis_connection::server_info(&Primary::new(config)?, TIMEOUT).await };
    match info.await {
        Ok(info) => of_info(&info),
        Err(error) => {
            let advice = "check redis.url, redis.password and redis.sentinels; without Redis, limits count per process and changes reach \
                          the edges up to a minute late";
            vec![Finding::failed("redis", error.to_string(), advice)]
        }
    }
}

fn of_info(info: &ServerInfo) -> Vec<Finding> {
    let mut findings = vec![Finding::ok("redis", "reachable")];
    let mut numbers = info.version.split('.').map(|number| number.parse().unwrap_or(0));
    let known = [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)];
    findings.push(if known < MIN_VERSION {
        let [major, minor] = MIN_VERSION;
        let advice = format!("use Redis {major}.{minor} or newer, or Valkey");
        Finding::failed("redis.version", info.version.clone(), advice)
    } else {
        Finding::ok("redis.version", info.version.clone())
    });
    if !info.is_primary {
        let advice = "redis.url must lead to the primary";
        findings.push(Finding::failed("redis.writable", "this server is a replica", advice));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn old_servers_and_replicas_fail() {
        let info = |version: &str, is_primary| ServerInfo {
            version: version.to_owned(),
            is_primary,
            has_append_only_file: true,
        };
        let worst = |info: &ServerInfo| of_info(info).iter().map(|finding| finding.status).max().unwrap();
        assert_eq!(worst(&info("8.2.1", true)), Status::Ok);
        assert_eq!(worst(&info("6.2.5", true)), Status::Ok);
        assert_eq!(worst(&info("6.0.16", true)), Status::Failed);
        assert_eq!(worst(&info("8.2.1", false)), Status::Failed);
    }
}
