//! Postgres while connections die without a reset, while it is read-only, and while locks are held.

use std::time::{Duration, Instant};

use domain::Transient as _;
use sandbox::test::SilentProxy;
use store::read_pool::ReadPool;
use store::{Config, Db, begin, read_clock};

const STATEMENT_TIMEOUT: Duration = Duration::from_secs(1);
/// The statement timeout, the margin after it, and time for a busy machine.
const IN_TIME: Duration = Duration::from_secs(10);
const CONNECTIONS: u32 = 3;

/// Opens a pool through a proxy, with all its connections idle.
async fn through_proxy(url: &str) -> (SilentProxy, Db) {
    let (proxy, url) = SilentProxy::start(url).await;
    let config = Config { statement_timeout: STATEMENT_TIMEOUT, ..Config::new(url, CONNECTIONS) };
    let db = store::connect(&config).unwrap();
    let mut conns = Vec::new();
    for _ in 0..CONNECTIONS {
        conns.push(store::acquire(&db).await.unwrap());
    }
    drop(conns);
    sandbox::test::until(async || db.num_idle() == CONNECTIONS as usize).await;
    (proxy, db)
}

/// Begins a transaction on each connection.
async fn all_in_transactions(db: &Db) -> Vec<store::Tx> {
    let mut conns = Vec::new();
    for _ in 0..CONNECTIONS {
        conns.push(begin(db).await.unwrap());
    }
    conns
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_on_a_connection_that_died_without_a_reset_ends_at_its_deadline() {
    let database = sandbox::test::database().await;
    let (proxy, db) = through_proxy(&database.url).await;
    let conns = all_in_transactions(&db).await;
    proxy.swallow();
    let started = Instant::now();
    for mut tx in conns {
        let error = read_clock(&mut tx).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        let at_once = Instant::now();
        assert!(
            read_clock(&mut tx).await.is_err() && at_once.elapsed() < STATEMENT_TIMEOUT,
            "no second wait"
        );
    }
    assert!(started.elapsed() < IN_TIME * CONNECTIONS, "{:?}", started.elapsed());
    proxy.pass();
    // The slots are free again, all of them.
    let mut conns = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut conn = sandbox::test::eventually(async || store::acquire(&db).await.ok()).await;
        read_clock(&mut conn).await.unwrap();
        conns.push(conn);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_died_while_idle_are_replaced_together() {
    let database = sandbox::test::database().await;
    let (proxy, db) = through_proxy(&database.url).await;
    proxy.swallow();
    proxy.pass();
    let started = Instant::now();
    let mut conns = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut conn = store::acquire(&db).await.unwrap();
        read_clock(&mut conn).await.unwrap();
        conns.push(conn);
    }
    // One ping of two seconds finds out for all of them.
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_dies_on_its_way_back_to_the_pool_frees_its_slot() {
    let database = sandbox::test::database().await;
    let (proxy, db) = through_proxy(&database.url).await;
    let conns = all_in_transactions(&db).await;
    proxy.swallow();
    drop(conns);
    proxy.pass();
    let mut conns = Vec::new();
    for _ in 0..CONNECTIONS {
        conns.push(sandbox::test::eventually(async || store::acquire(&db).await.ok()).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_go_on_after_their_connections_died_while_idle() {
    let database = sandbox::test::database().await;
    let (proxy, db) = through_proxy(&database.url).await;
    let pool = ReadPool::new(db);
    proxy.swallow();
    proxy.pass();
    let started = Instant::now();
    sandbox::test::until(async || pool.query(read_clock).await.is_ok()).await;
    // One query times out after two seconds; then the connections are replaced.
    assert!(started.elapsed() < IN_TIME, "{:?}", started.elapsed());
}

/// On an overloaded machine, an outage would otherwise last as long as the load: each read would end before its new
/// connection is open.
#[tokio::test(flavor = "multi_thread")]
async fn reads_go_on_while_connecting_takes_longer_than_a_read_waits() {
    let database = sandbox::test::database().await;
    let (proxy, db) = through_proxy(&database.url).await;
    let pool = ReadPool::new(db);
    proxy.delay(Duration::from_millis(1_500));
    assert!(pool.query(read_clock).await.is_err(), "a round trip takes three seconds");
    // To connect and to read takes four round trips or more, to read on an open connection two.
    proxy.delay(Duration::from_millis(300));
    sandbox::test::until(async || pool.query(read_clock).await.is_ok()).await;
    let again = pool.query(read_clock).await;
    assert!(again.is_ok(), "the connections stay open: {again:?}");
}

#[tokio::test]
async fn the_connections_for_reads_are_open_before_the_first_read() {
    let database = sandbox::test::database().await;
    let count = "select count(*) from pg_stat_activity where application_name = 'reads'";
    let config = Config::new(format!("{}?application_name=reads", database.url), 1);
    let _pool = ReadPool::connect(&config, CONNECTIONS).unwrap();
    let open = async || sqlx::query_scalar::<_, i64>(count).fetch_one(&database.db).await.unwrap();
    sandbox::test::until(async || open().await == i64::from(CONNECTIONS)).await;
}

/// On an overloaded machine, one slow read would otherwise fail all others until new connections are open.
#[tokio::test]
async fn a_read_that_times_out_while_others_are_answered_fails_alone() {
    let database = sandbox::test::database().await;
    let db = store::connect(&Config::new(&database.url, CONNECTIONS)).unwrap();
    let pool = ReadPool::new(db.clone());
    let slow = pool.query(async |conn: &mut store::Conn| {
        Ok(sqlx::query("select pg_sleep(60)").execute(&mut *conn).await.map(drop)?)
    });
    let others = async {
        sandbox::test::until(async || db.size() > db.num_idle().try_into().unwrap()).await;
        pool.query(read_clock).await
    };
    let (slow, other) = tokio::join!(slow, others);
    assert!(slow.is_err() && other.is_ok(), "{slow:?} {other:?}");
    let after = pool.query(read_clock).await;
    assert!(after.is_ok(), "the circuit stays closed: {after:?}");
    sandbox::test::until(async || db.num_idle() == CONNECTIONS as usize).await;
}

#[tokio::test]
async fn a_dropped_transaction_is_rolled_back_before_its_connection_is_used_again() {
    let database = sandbox::test::database().await;
    let db = store::connect(&Config::new(&database.url, 1)).unwrap();
    let mut tx = begin(&db).await.unwrap();
    sqlx::query("create table kept (id int)").execute(&mut *tx).await.unwrap();
    drop(tx);
    let exists = "select to_regclass('kept') is not null or pg_current_xact_id_if_assigned() is not null";
    assert!(!sqlx::query_scalar::<_, bool>(exists).fetch_one(&db).await.unwrap());
    let mut conn = store::acquire(&db).await.unwrap();
    let tx = store::begin_with_timeout(&mut conn, IN_TIME).await.unwrap();
    drop(tx);
    assert!(read_clock(&mut conn).await.is_err(), "a borrowed connection with an open transaction is closed");
}

#[tokio::test]
async fn a_read_only_postgres_is_a_transient_error() {
    let database = sandbox::test::database().await;
    store::execute_raw(&database.db, "do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$")
        .await
        .unwrap();
    let db = store::connect(&Config::new(&database.url, 1)).unwrap();
    let error = store::execute_raw(&db, "create table t ()").await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("read-only"), "{error}");
}

#[tokio::test]
async fn a_lock_of_another_transaction_and_an_idle_one_end_in_time() {
    let database = sandbox::test::database().await;
    let short = Duration::from_millis(200);
    let config =
        Config { lock_timeout: short, idle_in_transaction_timeout: short, ..Config::new(&database.url, 2) };
    let db = store::connect(&config).unwrap();
    let mut holder = begin(&database.db).await.unwrap();
    sqlx::query("lock table accounts").execute(&mut *holder).await.unwrap();
    let mut waiting = begin(&db).await.unwrap();
    let error = sqlx::query("select from accounts").execute(&mut *waiting).await.unwrap_err();
    assert!(store::Error::from(error).is_transient());
    let mut idle = begin(&db).await.unwrap();
    sandbox::test::until(async || {
        let idle = "select count(*) from pg_stat_activity
                    where datname = current_database() and state like 'idle in transaction' and pid <> pg_backend_pid()";
        // The holder of the lock is idle too, and stays: its pool has another limit.
        sqlx::query_scalar::<_, i64>(idle).fetch_one(&database.db).await.unwrap() == 1
    })
    .await;
    let error = read_clock(&mut idle).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
}

#[tokio::test]
async fn postgres_watches_the_sockets_of_its_clients() {
    let database = sandbox::test::database().await;
    for (name, value) in [
        ("tcp_keepalives_idle", "10"),
        ("tcp_keepalives_interval", "5"),
        ("tcp_keepalives_count", "3"),
        ("tcp_user_timeout", "20000"),
        ("client_connection_check_interval", "1s"),
        ("idle_in_transaction_session_timeout", "1min"),
        ("statement_timeout", "1min"),
        ("lock_timeout", "1min"),
    ] {
        let shown: String = sqlx::query_scalar("select current_setting($1)")
            .bind(name)
            .fetch_one(&database.db)
            .await
            .unwrap();
        assert_eq!(shown, value, "{name}");
    }
}
