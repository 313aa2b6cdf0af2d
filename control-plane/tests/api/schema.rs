//! The start on databases of other releases, and on one without a schema.

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

impl Api {
    /// Checks that no further control plane starts, because of this.
    async fn is_refused(&self, beginning: &str) {
        let error = refusal(self.config(&[])).await;
        let mismatch = store::find_schema_mismatch(&self.database.db).await.unwrap();
        // On a busy machine the check ends after the start, and the error names its component as well.
        let sentence = mismatch.unwrap().to_string();
        assert!(sentence.starts_with(beginning) && error.contains(&sentence), "{error}");
    }
}

#[tokio::test]
async fn a_control_plane_refuses_schemas_of_other_releases() {
    let api = Api::start(&[]).await;
    let clickhouse = sandbox::test::clickhouse().await;
    let missing = TestClickHouse { database: "never_migrated".to_owned(), ..clickhouse };
    let set = missing.settings();
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    let error = refusal(api.config(&set)).await;
    let mismatch = missing.connect().find_schema_mismatch().await.unwrap().unwrap().to_string();
    assert!(mismatch.starts_with("the ClickHouse database has no schema, this program needs "), "{mismatch}");
    assert!(error.contains(&mismatch), "{error}");

    let older = "update _sqlx_migrations set success = false
                 where version = (select max(version) from _sqlx_migrations)";
    api.execute(older).await.unwrap();
    api.is_refused("the database has schema ").await;

    api.execute("update _sqlx_migrations set success = true").await.unwrap();
    let newer =
        "insert into schema_releases (release, name) select max(release) + 2, 'later' from schema_releases";
    api.execute(newer).await.unwrap();
    api.is_refused("the database has the schema of release later, but this program works only").await;
}

#[tokio::test]
async fn a_control_plane_does_not_migrate() {
    let api = Api::start(&[]).await;
    api.execute("drop schema public cascade; create schema public").await.unwrap();
    api.is_refused("the database has no schema, this program needs ").await;
    let mut conn = store::acquire(&api.database.db).await.unwrap();
    assert_eq!(store::list_migrations(&mut conn).await.unwrap().applied, Vec::<i64>::new());
}
