//! The start on a database of another release.

use crate::fixture::Fixture;

#[tokio::test]
async fn a_collector_refuses_a_schema_two_releases_newer() {
    let fixture = Fixture::new().await;
    let newer =
        "insert into schema_releases (release, name) select max(release) + 2, 'later' from schema_releases";
    store::execute_raw(&fixture.database.db, newer).await.unwrap();
    let error = fixture.start().await.end().await.unwrap_err().to_string();
    assert!(error.starts_with("the database has the schema of release later, "), "{error}");
}
