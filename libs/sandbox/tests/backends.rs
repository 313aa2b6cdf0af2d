//! Postgres and Redis: start, SIGKILL, restart on the same data.
#![expect(clippy::unwrap_used, reason = "a test's own plumbing may fail loudly")]

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use sandbox::Data;
use sandbox::dirs;
use sandbox::postgres::{self, Postgres};
use sandbox::programs::Source;
use sandbox::progress::Progress;
use sandbox::redis::{self, Redis};
use store::{Config, Db};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

fn kill(pid: u32) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
}

async fn postgres(dir: &Path, source: Source) -> anyhow::Result<Postgres> {
    let data = Data::Persistent(dir.to_owned());
    Postgres::start(postgres::Options { data, source, ..postgres::Options::temporary() }, &Progress::silent())
        .await
}

fn connect(postgres: &Postgres) -> Db {
    store::connect(&Config::new(postgres.url(), 2)).unwrap()
}

async fn redis(dir: &Path) -> Redis {
    let options = redis::Options { data: Data::Persistent(dir.to_owned()), ..redis::Options::temporary() };
    Redis::start(options, &Progress::silent()).await.unwrap()
}

async fn send(redis: &Redis, command: &str, expected: &str) {
    let address = redis.url();
    let address = address.trim_start_matches("redis://").trim_end_matches('/');
    let mut server = TcpStream::connect(address).await.unwrap();
    server.write_all(command.as_bytes()).await.unwrap();
    let mut response = vec![0; expected.len()];
    server.read_exact(&mut response).await.unwrap();
    assert_eq!(String::from_utf8(response).unwrap(), expected);
}

async fn survives_a_kill(source: Source) {
    let dir = tempfile::tempdir().unwrap();
    let first = postgres(dir.path(), source).await.unwrap();
    let db = connect(&first);
    store::execute_raw(&db, "CREATE TABLE stored AS SELECT 1 AS n").await.unwrap();
    kill(first.pid());
    // The server's child processes are still running; the next start waits for them.
    let second = postgres(dir.path(), source).await.unwrap();
    let again = connect(&second);
    store::execute_raw(&again, "INSERT INTO stored VALUES (2)").await.unwrap();
    second.stop().await.unwrap();
    assert!(store::execute_raw(&again, "SELECT 1").await.is_err());
    let third = postgres(dir.path(), source).await.unwrap();
    store::execute_raw(&connect(&third), "SELECT 1 / (count(*) - 1) FROM stored").await.unwrap();
    drop(third);
    dirs::erase(dir.path()).unwrap();
}

#[tokio::test]
async fn postgres_keeps_its_data_after_sigkill_and_stop() {
    survives_a_kill(Source::Any).await;
}

#[tokio::test]
async fn the_fetched_postgres_keeps_its_data_too() {
    survives_a_kill(Source::Fetched).await;
}

#[tokio::test]
async fn a_reused_process_id_in_postmaster_pid_does_not_prevent_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let first = postgres(dir.path(), Source::Any).await.unwrap();
    let moved = std::fs::read_link(dir.path().join("moved"));
    let pid_file = moved.unwrap_or_else(|_| dir.path().to_owned()).join("data/postmaster.pid");
    let text = std::fs::read_to_string(&pid_file).unwrap();
    kill(first.pid());
    drop(first);
    let reused = text.replacen(text.lines().next().unwrap(), &std::process::id().to_string(), 1);
    std::fs::write(&pid_file, reused).unwrap();
    postgres(dir.path(), Source::Any).await.unwrap().stop().await.unwrap();
    dirs::erase(dir.path()).unwrap();
}

#[tokio::test]
async fn postgres_requires_its_password() {
    let server = Postgres::start(postgres::Options::temporary(), &Progress::silent()).await.unwrap();
    let (account, address) = server.url().split_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert!(account.len() > 60, "{account}");
    let wrong = store::connect(&Config::new(format!("postgres://postgres:x@{address}"), 1)).unwrap();
    let error = store::execute_raw(&wrong, "SELECT 1").await.unwrap_err();
    assert!(format!("{error:?}").contains("password authentication failed"), "{error:?}");
}

#[tokio::test]
async fn a_failed_start_reports_its_cause_at_once() {
    let dir = tempfile::tempdir().unwrap();
    postgres(dir.path(), Source::Any).await.unwrap().stop().await.unwrap();
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = postgres::Options {
        data: Data::Persistent(dir.path().to_owned()),
        port: taken.local_addr().unwrap().port(),
        ..postgres::Options::temporary()
    };
    let error = Postgres::start(options, &Progress::silent()).await.unwrap_err().to_string();
    assert!(error.contains("ddress already in use"), "{error}");
    dirs::erase(dir.path()).unwrap();
}

#[tokio::test]
async fn redis_keeps_its_data_after_stop_and_most_of_it_after_sigkill() {
    let dir = tempfile::tempdir().unwrap();
    let first = redis(dir.path()).await;
    send(&first, "SET n 1\r\n", "+OK\r\n").await;
    first.stop().await.unwrap();
    let second = redis(dir.path()).await;
    send(&second, "GET n\r\n", "$1\r\n1\r\n").await;
    kill(second.pid());
    let third = redis(dir.path()).await;
    send(&third, "INCR n\r\n", ":2\r\n").await;
}
