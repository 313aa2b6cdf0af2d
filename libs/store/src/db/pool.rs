//! Pools of Postgres connections, and the timeouts and keepalives that each connection gets.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode};
use tokio::time::timeout;

use super::config::Config;
use super::last_timeout::{LastTimeout, no_answer};
use super::open_pools;
use crate::Error;

/// How long a pooled connection may take to answer a ping. One that doesn't is replaced.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Postgres ends the session of a client whose host has vanished, with its locks, after half a minute, and the statement
/// of a client that has closed its connection after a second. The client's own socket can't be set through sqlx: there
/// the deadline of each statement replaces keepalives.
const SESSION_OPTIONS: [(&str, &str); 5] = [
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "20000"),
    ("client_connection_check_interval", "1000"),
];

/// A connection pool. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Db {
    pool: Arc<PgPool>,
    statement_timeout: Duration,
    last_timeout: LastTimeout,
}

impl Db {
    pub(super) fn pool(&self) -> &PgPool {
        &self.pool
    }

    pub(super) fn statement_timeout(&self) -> Duration {
        self.statement_timeout
    }

    /// Records that a connection got no answer, so that those that are idle now are replaced before they are used.
    pub(crate) fn record_timeout(&self) {
        self.last_timeout.record();
    }

    pub(super) fn last_timeout(&self) -> &LastTimeout {
        &self.last_timeout
    }
}

/// For tests and tools, which use sqlx directly.
impl Deref for Db {
    type Target = PgPool;

    fn deref(&self) -> &PgPool {
        &self.pool
    }
}

/// Returns a pool that connects on first use, so that a service can start while Postgres is down.
pub fn connect(config: &Config) -> Result<Db, Error> {
    open(config, pool_options(config.max_connections), &[], true)
}

/// Like [`connect`], but a statement fails when it waits for a lock longer than `lock_timeout` or runs longer than
/// twice that time, if the configured times are not shorter. So requests that wait for a lock can't occupy all
/// connections.
pub fn connect_with_lock_timeout(config: &Config, lock_timeout: Duration) -> Result<Db, Error> {
    connect(&with_lock_timeout(config, lock_timeout))
}

/// Like [`connect_with_lock_timeout`], with `connections` that stay open. sqlx opens none of them before the first is used:
/// only one that is closed is replaced in the background.
pub(crate) fn connect_kept_open(
    config: &Config,
    connections: u32,
    lock_timeout: Duration,
) -> Result<Db, Error> {
    let pool = pool_options(connections).min_connections(connections);
    open(&with_lock_timeout(config, lock_timeout), pool, &[], true)
}

fn with_lock_timeout(config: &Config, lock_timeout: Duration) -> Config {
    Config {
        lock_timeout: config.lock_timeout.min(lock_timeout),
        statement_timeout: config.statement_timeout.min(2 * lock_timeout),
        ..config.clone()
    }
}

/// A separate pool for a few statements that run constantly over tables of changing size. Each statement gets one
/// generic plan that uses indexes only: a plan made for an empty table would otherwise keep scanning the full one. Idle
/// connections are not tested before use; the caller must retry.
pub fn connect_generic_plans(config: &Config, max_connections: u32) -> Result<Db, Error> {
    let plans = [("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off")];
    open(config, pool_options(max_connections), &plans, false)
}

fn pool_options(max_connections: u32) -> PgPoolOptions {
    PgPoolOptions::new().max_connections(max_connections)
}

fn open(config: &Config, pool: PgPoolOptions, options: &[(&str, &str)], pings: bool) -> Result<Db, Error> {
    let last_timeout = LastTimeout::default();
    let shared = last_timeout.clone();
    let pool = pool
        .acquire_timeout(config.acquire_timeout)
        .test_before_acquire(false)
        .before_acquire(move |conn, meta| {
            let last_timeout = shared.clone();
            Box::pin(async move {
                if last_timeout.is_within(meta.idle_for) {
                    return Ok(false);
                }
                if !pings {
                    return Ok(true);
                }
                match timeout(PING_TIMEOUT, conn.ping()).await {
                    Ok(answer) => answer.map(|()| true),
                    Err(_elapsed) => {
                        last_timeout.record();
                        tracing::warn!("a connection to postgres no longer answers and is replaced");
                        Err(no_answer())
                    }
                }
            })
        })
        .connect_lazy_with(connect_options(config)?.options(options.iter().copied()));
    let pool = Arc::new(pool);
    open_pools::register(Arc::downgrade(&pool));
    Ok(Db { pool, statement_timeout: config.statement_timeout, last_timeout })
}

fn with_password(config: &Config, options: PgConnectOptions) -> PgConnectOptions {
    match config.password.expose_secret() {
        "" => options,
        password => options.password(password),
    }
}

/// Requires TLS if `ca_file` is set, with the host name that the URL has. sqlx reads the file for each connection, so it may
/// be replaced; it accepts public roots as well, and would ignore a file without any certificate.
fn with_tls(config: &Config, options: PgConnectOptions) -> Result<PgConnectOptions, Error> {
    let file = &config.ca_file;
    if file.as_os_str().is_empty() {
        return Ok(options);
    }
    let wrong = |reason: String| Error::Setting(format!("store.ca_file: {}: {reason}", file.display()));
    let roots = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    if !roots.contains("-----BEGIN CERTIFICATE-----") {
        return Err(wrong("it has no certificate in PEM".to_owned()));
    }
    Ok(options.ssl_mode(PgSslMode::VerifyFull).ssl_root_cert(file))
}

/// Refuses a list of hosts: sqlx would take it for the name of one.
fn check_one_host(url: &str) -> Result<(), Error> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    let hosts = address.split('/').next().unwrap_or_default().rsplit('@').next().unwrap_or_default();
    let in_query = query.split('&').any(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        matches!(key, "host" | "hostaddr")
            && (value.contains(',') || value.to_ascii_lowercase().contains("%2c"))
    });
    if hosts.contains(',') || in_query {
        return Err(Error::Setting(
            "store.url names several hosts, and none of them would be known to be the primary: name the address of a \
             balancer that leads to the primary alone, such as HAProxy in front of Patroni (deploy/docs/scaling.md)"
                .to_owned(),
        ));
    }
    Ok(())
}

/// JIT compilation is off: no statement here runs long enough to benefit, and when the planner overestimates a row
/// count, compiling costs thirty times the execution.
fn connect_options(config: &Config) -> Result<PgConnectOptions, Error> {
    let timeouts = [
        ("lock_timeout", config.lock_timeout),
        ("statement_timeout", config.statement_timeout),
        ("idle_in_transaction_session_timeout", config.idle_in_transaction_timeout),
    ];
    check_one_host(&config.url)?;
    let options = with_tls(config, with_password(config, config.url.parse()?))?.options([("jit", "off")]);
    Ok(options.options(SESSION_OPTIONS).options(timeouts.map(|(name, time)| (name, time.as_millis()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_hosts_is_refused_with_what_to_do() {
        let opened =
            |url: &str| connect_options(&Config::new(url, 1)).map(|_| ()).map_err(|error| error.to_string());
        for url in [
            "postgres://app@db1:5432,db2:5432/app",
            "postgres://app:a%2Cb@db1,db2/app",
            "postgres:///app?host=db1,db2",
            "postgres://app@/app?user=x&host=db1%2Cdb2",
        ] {
            assert!(opened(url).unwrap_err().contains("HAProxy in front of Patroni"), "{url}");
        }
        for url in ["postgres://app:a%2Cb@db1:5432/app", "postgres://app@db1/app?application_name=a,b"] {
            assert_eq!(opened(url), Ok(()), "{url}");
        }
    }
}
