//! The start on a database of another release, and on one without a schema.

use crate::fixture::account::Account;

impl Account {
    /// Checks that no job-runner starts, because of this.
    async fn is_refused(&self, beginning: &str) {
        let error = self.run(&[]).await.end().await.unwrap_err().to_string();
        let mismatch = store::find_schema_mismatch(&self.database.db).await.unwrap();
        // On a busy machine the check ends after the start, and the error names its component as well.
        let sentence = mismatch.unwrap().to_string();
        assert!(sentence.starts_with(beginning) && error.contains(&sentence), "{error}");
    }
}

#[tokio::test]
async fn a_job_runner_refuses_a_schema_that_is_older_or_two_releases_newer() {
    let account = Account::new().await;
    let older = "update _sqlx_migrations set success = false
                 where version = (select max(version) from _sqlx_migrations)";
    account.change(older).await;
    account.is_refused("the database has schema ").await;

    account.change("update _sqlx_migrations set success = true").await;
    let next = store::SCHEMA_RELEASE + 1;
    account.change(&format!("insert into schema_releases (release, name) values ({next}, 'next')")).await;
    account.run(&[]).await.stop().await;

    let later = next + 1;
    account.change(&format!("insert into schema_releases (release, name) values ({later}, 'later')")).await;
    account.is_refused("the database has the schema of release later, but this program works only").await;
}

#[tokio::test]
async fn a_job_runner_does_not_migrate() {
    let account = Account::new().await;
    account.change("drop schema public cascade; create schema public").await;
    account.is_refused("the database has no schema, this program needs ").await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    assert_eq!(store::list_migrations(&mut conn).await.unwrap().applied, Vec::<i64>::new());
}
