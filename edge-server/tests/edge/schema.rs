//! The start on a database of another release.

use crate::harness::Edge;

#[tokio::test]
async fn an_edge_refuses_a_schema_two_releases_newer() {
    let edge = Edge::start().await;
    edge.run(
        "insert into schema_releases (release, name) select max(release) + 2, 'later' from schema_releases",
    )
    .await;
    let error = edge.refusal().await;
    assert!(error.starts_with("the database has the schema of release later, "), "{error}");
}
