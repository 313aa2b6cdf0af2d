//! Which schemas a program accepts: its own, and that of the next release.

use std::time::Duration;

use sandbox::test::TestDatabase;
use store::{Config, SCHEMA_RELEASE, find_schema_mismatch, list_migrations, list_schema_releases};

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

#[tokio::test]
async fn a_newer_schema_is_refused_also_if_rows_of_releases_are_missing() {
    let (last, found) = (SCHEMA_RELEASE + 2, SCHEMA_RELEASE + 1);
    let text = refusal_after(&release(last)).await.unwrap();
    assert_eq!(
        text,
        format!(
            "the database has the schema of release of test {last}, but this program works only up to that of release \
             number {found}: start the programs of release of test {last}"
        )
    );
    let alone = format!("delete from schema_releases; {}", release(last));
    assert_eq!(refusal_after(&alone).await.unwrap(), text);
    for nothing_recorded in ["delete from schema_releases", "drop table schema_releases"] {
        let text = refusal_after(nothing_recorded).await.unwrap();
        let expected =
            "the schema of the database can't be checked: no release is recorded in `schema_releases`; ";
        assert!(text.starts_with(expected), "{text}");
    }
}

#[tokio::test]
async fn a_database_that_answers_without_its_schema_is_refused_and_one_that_does_not_answer_is_an_error() {
    let database = sandbox::test::database().await;
    let (_, address) = database.url.rsplit_once('@').unwrap();
    let (_, name) = address.rsplit_once('/').unwrap();
    let role = format!("limited_{name}");
    let grants = format!(
        "create role {role} login password 'only-for-this-test'; grant usage on schema public to {role};"
    );
    store::execute_raw(&database.db, &grants).await.unwrap();
    let url = format!("postgres://{role}:only-for-this-test@{address}");
    let config = Config { acquire_timeout: Duration::from_mins(1), ..Config::new(&url, 1) };
    let limited = store::connect(&config).unwrap();
    let text = find_schema_mismatch(&limited).await.unwrap().unwrap().to_string();
    // Postgres adds where in its own source.
    for part in [
        "the schema of the database can't be checked: postgres: error returned from database: permission denied for table \
         _sqlx_migrations",
        "; this program must be able to read the tables `_sqlx_migrations` and `schema_releases`",
    ] {
        assert!(text.contains(part), "{text}");
    }
    store::execute_raw(&database.db, &format!("grant select on all tables in schema public to {role}"))
        .await
        .unwrap();
    assert_eq!(find_schema_mismatch(&limited).await.unwrap(), None);
    limited.close().await;

    let absent = store::connect(&Config::new("postgres://app@127.0.0.1:9/app", 1)).unwrap();
    assert!(find_schema_mismatch(&absent).await.is_err());
}
