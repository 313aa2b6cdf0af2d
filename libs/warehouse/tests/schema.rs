//! Which schemas a program accepts: its own, and newer ones. Postgres tells how many releases newer.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use sandbox::test::TestClickHouse;

/// Runs a statement on the test's database.
async fn execute(clickhouse: &TestClickHouse, statement: &str) {
    let client = clickhouse::Client::default()
        .with_url(&clickhouse.url)
        .with_user(&clickhouse.user)
        .with_password(&clickhouse.password)
        .with_database(&clickhouse.database);
    client.query(statement).execute().await.unwrap();
}

#[tokio::test]
async fn a_schema_that_lacks_migrations_is_refused_and_a_newer_one_is_not() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let applied = warehouse.list_migrations().await.unwrap().applied;
    assert_eq!(warehouse.find_schema_mismatch().await.unwrap(), None);
    execute(&clickhouse, "INSERT INTO schema_migrations (name) VALUES ('9999_of_tomorrow.sql')").await;
    assert_eq!(warehouse.find_schema_mismatch().await.unwrap(), None);

    let [.., before, last] = applied.as_slice() else { panic!("{applied:?}") };
    execute(
        &clickhouse,
        &format!("ALTER TABLE schema_migrations DELETE WHERE name = '{last}' SETTINGS mutations_sync = 2"),
    )
    .await;
    let (has, needs) = (before.trim_end_matches(".sql"), last.trim_end_matches(".sql"));
    let expected = format!(
        "the ClickHouse database has schema {has}, this program needs {needs}: run `webruntime migrate`"
    );
    assert_eq!(warehouse.find_schema_mismatch().await.unwrap().unwrap().to_string(), expected);
}

#[tokio::test]
async fn a_missing_database_has_no_schema() {
    let clickhouse = sandbox::test::clickhouse().await;
    let missing = TestClickHouse { database: "never_migrated".to_owned(), ..clickhouse };
    let mismatch = missing.connect().find_schema_mismatch().await.unwrap().unwrap();
    assert!(mismatch.to_string().contains("has no schema, this program needs "), "{mismatch}");
}

#[tokio::test]
async fn a_database_that_answers_without_its_schema_is_refused_and_one_that_does_not_answer_is_an_error() {
    let clickhouse = sandbox::test::clickhouse().await;
    execute(&clickhouse, "DROP TABLE schema_migrations SYNC").await;
    execute(&clickhouse, "CREATE TABLE schema_migrations (other String) ENGINE = MergeTree ORDER BY other")
        .await;
    let mismatch = clickhouse.connect().find_schema_mismatch().await.unwrap().unwrap().to_string();
    assert!(mismatch.starts_with("the schema of the ClickHouse database can't be checked: "), "{mismatch}");
    assert!(mismatch.ends_with("able to read `system.tables` and `schema_migrations`"), "{mismatch}");
    let absent = TestClickHouse { url: "http://127.0.0.1:9".to_owned(), ..clickhouse };
    assert!(absent.connect().find_schema_mismatch().await.is_err());
}
