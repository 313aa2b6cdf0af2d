//! The start on a database of another release, and on one without a schema.

use crate::fixture::Fixture;

impl Fixture {
    async fn change(&self, statements: &str) {
        store::execute_raw(&self.database.db, statements).await.unwrap();
    }

    /// Checks that no collector starts, because of this.
    async fn is_refused(&self, beginning: &str) {
        let error = self.start().await.end().await.unwrap_err().to_string();
        let mismatch = store::find_schema_mismatch(&self.database.db).await.unwrap();
        // On a busy machine the check ends after the start, and the error names its component as well.
        let sentence = mismatch.unwrap().to_string();
        assert!(sentence.starts_with(beginning) && error.contains(&sentence), "{error}");
    }
}

#[tokio::test]
async fn a_collector_refuses_a_schema_that_is_older_or_two_releases_newer() {
    let fixture = Fixture::new().await;
    fixture
        .change(
            "update _sqlx_migrations set success = false
             where version = (select max(version) from _sqlx_migrations)",
        )
        .await;
    fixture.is_refused("the database has schema ").await;

    fixture.change("update _sqlx_migrations set success = true").await;
    let newer =
        "insert into schema_releases (release, name) select max(release) + 2, 'later' from schema_releases";
    fixture.change(newer).await;
    fixture.is_refused("the database has the schema of release later, but this program works only").await;
}

#[tokio::test]
async fn a_collector_does_not_migrate() {
    let fixture = Fixture::new().await;
    fixture.change("drop schema public cascade; create schema public").await;
    fixture.is_refused("the database has no schema, this program needs ").await;
    let mut conn = store::acquire(&fixture.database.db).await.unwrap();
    assert_eq!(store::list_migrations(&mut conn).await.unwrap().applied, Vec::<i64>::new());
}
