//! The start on a database of another release.

use crate::fixture::account::Account;

#[tokio::test]
async fn a_job_runner_refuses_a_schema_that_is_older_or_two_releases_newer() {
    let account = Account::new().await;
    let older = "update _sqlx_migrations set success = false
                 where version = (select max(version) from _sqlx_migrations)";
    account.change(older).await;
    let error = account.run(&[]).await.end().await.unwrap_err().to_string();
    assert!(
        error.starts_with("the database has schema 1") && error.ends_with("run `webruntime migrate`"),
        "{error}"
    );

    account.change("update _sqlx_migrations set success = true").await;
    let next = store::SCHEMA_RELEASE + 1;
    account.change(&format!("insert into schema_releases (release, name) values ({next}, 'next')")).await;
    account.run(&[]).await.stop().await;

    let later = next + 1;
    account.change(&format!("insert into schema_releases (release, name) values ({later}, 'later')")).await;
    let error = account.run(&[]).await.end().await.unwrap_err().to_string();
    assert!(
        error.starts_with("the database has the schema of release later, but this program works only"),
        "{error}"
    );
}
