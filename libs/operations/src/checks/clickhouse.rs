//! ClickHouse: reachable and recent.

use warehouse::Warehouse;

use super::finding::Finding;

/// The release that the tests use.
const TESTED_VERSION: [u32; 2] = [26, 7];

/// Checks the server. Later checks of ClickHouse make no sense if the first finding failed.
pub async fn check_clickhouse(warehouse: &Warehouse) -> Vec<Finding> {
    match warehouse.server_version().await {
        Ok(version) => {
            vec![Finding::ok("clickhouse", "reachable"), of_version(&version), check_cluster(warehouse).await]
        }
        Err(error) => {
            let advice = "check warehouse.url (the HTTP port, 8123), warehouse.user and warehouse.password";
            vec![Finding::failed("clickhouse", error.to_string(), advice)]
        }
    }
}

/// Checks that the servers know the cluster, with a shard that takes rows.
async fn check_cluster(warehouse: &Warehouse) -> Finding {
    match warehouse.list_shards().await {
        Ok(shards) => Finding::ok("clickhouse.shards", shards.count().to_string()),
        Err(error) => {
            Finding::failed("clickhouse.shards", error.to_string(), "see deploy/docs/scaling.md, ClickHouse")
        }
    }
}

fn of_version(version: &str) -> Finding {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let known = [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)];
    if known < TESTED_VERSION {
        let [major, minor] = TESTED_VERSION;
        let advice = format!("the statements are tested with {major}.{minor}; use that or a newer release");
        return Finding::warning("clickhouse.version", version, advice);
    }
    Finding::ok("clickhouse.version", version)
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        for (version, expected) in [
            ("26.7.3.1", Status::Ok),
            ("26.10.1", Status::Ok),
            ("27.1", Status::Ok),
            ("26.6.9", Status::Warning),
        ] {
            assert_eq!(of_version(version).status, expected, "{version}");
        }
    }
}
