//! The start on databases of other releases.

use control_plane::Config;
use sandbox::test::{TestClickHouse, TestStore};
use service::{Listeners, Shutdown};

use crate::harness::Api;

/// Returns why the service does not start.
async fn refusal(config: Config) -> String {
    let listeners = Listeners::on_free_ports().unwrap();
    let run = control_plane::run(config, listeners, Shutdown::new());
    sandbox::test::with_timeout(run).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_control_plane_refuses_schemas_of_other_releases() {
    let api = Api::start(&[]).await;
    let clickhouse = sandbox::test::clickhouse().await;
    let missing = TestClickHouse { database: "never_migrated".to_owned(), ..clickhouse }.settings();
    let set: Vec<&str> = missing.iter().map(String::as_str).collect();
    let error = refusal(api.config(&set)).await;
    assert!(error.starts_with("the ClickHouse database has no schema, this program needs "), "{error}");

    let newer =
        "insert into schema_releases (release, name) select max(release) + 2, 'later' from schema_releases";
    api.execute(newer).await.unwrap();
    let error = refusal(api.config(&[])).await;
    assert!(error.starts_with("the database has the schema of release later, "), "{error}");
}
