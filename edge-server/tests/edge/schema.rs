//! The start on a database of another release, and on one without a schema.

use crate::harness::Edge;

/// The start waits a second for the database, which a busy machine may miss.
const STARTS_MAX: usize = 5;

impl Edge {
    /// Checks that no further edge starts, because of this.
    async fn is_refused(&self, beginning: &str) {
        let mut starts = 0;
        let error = loop {
            starts += 1;
            match self.refusal().await {
                Some(error) => break error,
                None => assert!(starts < STARTS_MAX, "each start accepted connections before its end"),
            }
        };
        let mismatch = store::find_schema_mismatch(&self.database.db).await.unwrap();
        // On a busy machine the check ends after the start, and the error names its component as well.
        let sentence = mismatch.unwrap().to_string();
        assert!(sentence.starts_with(beginning) && error.contains(&sentence), "{error}");
    }
}

#[tokio::test]
async fn an_edge_refuses_a_schema_that_is_older_or_two_releases_newer() {
    let edge = Edge::start().await;
    edge.run(
        "update _sqlx_migrations set success = false
         where version = (select max(version) from _sqlx_migrations)",
    )
    .await;
    edge.is_refused("the database has schema ").await;

    edge.run("update _sqlx_migrations set success = true").await;
    edge.run(
        "insert into schema_releases (release, name) select max(release) + 2, 'later' from schema_releases",
    )
    .await;
    edge.is_refused("the database has the schema of release later, but this program works only").await;
}

#[tokio::test]
async fn an_edge_does_not_migrate() {
    let edge = Edge::start().await;
    edge.run("drop schema public cascade; create schema public").await;
    edge.is_refused("the database has no schema, this program needs ").await;
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    assert_eq!(store::list_migrations(&mut conn).await.unwrap().applied, Vec::<i64>::new());
}
