//! A cancelled statement leaves neither an occupied pool slot nor a running statement behind.

use std::time::Duration;

use store::Config;

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_statement_ends_on_the_server() {
    let database = sandbox::test::database().await;
    let config = Config::new(database.url.clone(), 2);
    let impatient = store::connect_with_lock_timeout(&config, Duration::from_secs(300)).unwrap();
    let asleep = async || -> i64 {
        let question = "select count(*) from pg_stat_activity where datname = current_database() and query like '%pg_sleep(100)%'
                        and pid <> pg_backend_pid() and state = 'active'";
        sqlx::query_scalar(question).fetch_one(&database.db).await.unwrap()
    };
    // More than the pool has slots.
    for _ in 0..3 {
        let mut conn = store::acquire_cancel_safe(&impatient).await.unwrap();
        let waiting = tokio::spawn(async move {
            sqlx::query("select pg_sleep(100)").execute(&mut *conn).await.unwrap();
            conn.release();
        });
        sandbox::test::until(async || asleep().await > 0).await;
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
    }
    sandbox::test::until(async || asleep().await == 0).await;
}
