//! The metrics of the pools of a process.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers may panic")]

use service::metrics::{declare, render};
use store::Config;

/// Returns the value of a series.
fn value(series: &str) -> f64 {
    let text = render();
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {text}")).parse().unwrap()
}

/// Returns the connections in use and the idle ones.
fn connections() -> (f64, f64) {
    let of = |state| value(&format!("webruntime_postgres_connections{{state=\"{state}\"}}"));
    (of("in_use"), of("idle"))
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_and_waits_for_them_are_measured_until_the_pool_is_dropped() {
    let database = sandbox::test::database().await;
    declare(&[store::metrics::ALL]);
    let (max, before) = (value("webruntime_postgres_connections_max"), connections());
    let db = store::connect(&Config::new(database.url.clone(), 2)).unwrap();
    assert_eq!(value("webruntime_postgres_connections_max"), max + 2.0);
    assert_eq!(connections(), before, "a connection is opened when it is needed");

    let waits = value("webruntime_postgres_acquire_seconds_count");
    let conns = (store::acquire(&db).await.unwrap(), store::acquire(&db).await.unwrap());
    assert_eq!(value("webruntime_postgres_acquire_seconds_count"), waits + 2.0);
    assert_eq!(connections().0, before.0 + 2.0);
    drop(conns);
    sandbox::test::until(async || connections() == (before.0, before.1 + 2.0)).await;
    drop(db);
    assert_eq!((value("webruntime_postgres_connections_max"), connections()), (max, before));
}
