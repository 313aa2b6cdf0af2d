//! Which schemas a program accepts: its own, and that of the next release.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use sandbox::test::TestDatabase;
use store::{SCHEMA_RELEASE, find_schema_mismatch, list_migrations, list_schema_releases};

/// Returns the sentence by which this program refuses the database after this change.
async fn refusal_after(change: &str) -> Option<String> {
    let database: TestDatabase = sandbox::test::database().await;
    store::execute_raw(&database.db, change).await.unwrap();
    find_schema_mismatch(&database.db).await.unwrap().map(|mismatch| mismatch.to_string())
}

/// The versions of the program's migrations.
async fn versions() -> Vec<i64> {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    list_migrations(&mut conn).await.unwrap().applied
}

fn release(number: i32) -> String {
    format!("insert into schema_releases (release, name) values ({number}, 'of test {number}');")
}

#[tokio::test]
async fn the_constant_is_the_release_of_the_newest_migration() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let releases = list_schema_releases(&mut conn).await.unwrap();
    assert_eq!(releases.last().unwrap().release, SCHEMA_RELEASE, "{releases:?}");
    let numbers: Vec<_> = releases.iter().map(|one| one.release).collect();
    assert_eq!(numbers, (1..=SCHEMA_RELEASE).collect::<Vec<_>>(), "one row for each release");
}

#[tokio::test]
async fn a_schema_that_lacks_a_migration_is_refused() {
    let versions = versions().await;
    let (newest, before) = (versions[versions.len() - 1], versions[versions.len() - 2]);
    let text = refusal_after(&format!("delete from _sqlx_migrations where version = {newest}")).await;
    let expected =
        format!("the database has schema {before}, this program needs {newest}: run `webruntime migrate`");
    assert_eq!(text.unwrap(), expected);
    let failed = format!("update _sqlx_migrations set success = false where version = {newest}");
    assert_eq!(refusal_after(&failed).await.unwrap(), expected, "a failed migration is not applied");

    let text = refusal_after(&format!("delete from _sqlx_migrations where version = {before}")).await;
    assert!(text.unwrap().starts_with(&format!("the database lacks migration {before}, ")));
    let text = refusal_after("drop table _sqlx_migrations").await;
    assert!(text.unwrap().starts_with("the database has no schema, this program needs "));
}

#[tokio::test]
async fn the_schema_of_the_next_release_is_accepted_and_the_one_after_it_is_not() {
    let newer = "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
                 values (9999, 'of tomorrow', true, '', 0);";
    assert_eq!(refusal_after(newer).await, None, "another migration of this release");
    let next = format!("{newer} {}", release(SCHEMA_RELEASE + 1));
    assert_eq!(refusal_after(&next).await, None);
    let after_next = format!("{next} {}", release(SCHEMA_RELEASE + 2));
    let text = refusal_after(&after_next).await.unwrap();
    let (found, accepted) =
        (format!("of test {}", SCHEMA_RELEASE + 2), format!("of test {}", SCHEMA_RELEASE + 1));
    let expected = format!(
        "the database has the schema of release {found}, but this program works only up to that of release {accepted}: \
         start the programs of release {found}"
    );
    assert_eq!(text, expected);
}
