//! Postgres and Redis: started, killed, started again on the same data.
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
    store::connect(&Config { url: postgres.url(), max_connections: 2 }).unwrap()
}

async fn redis(dir: &Path) -> Redis {
    let options = redis::Options { data: Data::Persistent(dir.to_owned()), ..redis::Options::temporary() };
    Redis::start(options, &Progress::silent()).await.unwrap()
}

async fn say(redis: &Redis, command: &str, wanted: &str) {
    let address = redis.url();
    let address = address.trim_start_matches("redis://").trim_end_matches('/');
    let mut server = TcpStream::connect(address).await.unwrap();
    server.write_all(command.as_bytes()).await.unwrap();
    let mut answer = vec![0; wanted.len()];
    server.read_exact(&mut answer).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), wanted);
}

async fn survives_a_kill(source: Source) {
    let dir = tempfile::tempdir().unwrap();
    let first = postgres(dir.path(), source).await.unwrap();
    let db = connect(&first);
    store::execute_raw(&db, "CREATE TABLE kept AS SELECT 1 AS n").await.unwrap();
    kill(first.pid());
    // The server's own children are still about; the next start waits for them.
    let second = postgres(dir.path(), source).await.unwrap();
    let again = connect(&second);
    store::execute_raw(&again, "INSERT INTO kept VALUES (2)").await.unwrap();
    second.stop().await.unwrap();
    assert!(store::execute_raw(&again, "SELECT 1").await.is_err());
    let third = postgres(dir.path(), source).await.unwrap();
    store::execute_raw(&connect(&third), "SELECT 1 / (count(*) - 1) FROM kept").await.unwrap();
    drop(third);
    dirs::erase(dir.path()).unwrap();
}

#[tokio::test]
async fn postgres_keeps_its_data_when_it_is_killed_or_stopped() {
    survives_a_kill(Source::Any).await;
}

#[tokio::test]
async fn the_fetched_postgres_does_so_too() {
    survives_a_kill(Source::Fetched).await;
}

#[tokio::test]
async fn a_recycled_process_id_in_postgress_note_does_not_keep_it_from_starting() {
    let dir = tempfile::tempdir().unwrap();
    let first = postgres(dir.path(), Source::Any).await.unwrap();
    let moved = std::fs::read_link(dir.path().join("moved"));
    let note = moved.unwrap_or_else(|_| dir.path().to_owned()).join("data/postmaster.pid");
    let text = std::fs::read_to_string(&note).unwrap();
    kill(first.pid());
    drop(first);
    let strangers = text.replacen(text.lines().next().unwrap(), &std::process::id().to_string(), 1);
    std::fs::write(&note, strangers).unwrap();
    postgres(dir.path(), Source::Any).await.unwrap().stop().await.unwrap();
    dirs::erase(dir.path()).unwrap();
}

#[tokio::test]
async fn postgres_asks_for_its_password() {
    let server = Postgres::start(postgres::Options::temporary(), &Progress::silent()).await.unwrap();
    let (account, address) = server.url().split_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert!(account.len() > 60, "{account}");
    let wrong =
        store::connect(&Config { url: format!("postgres://postgres:x@{address}"), max_connections: 1 })
            .unwrap();
    let said = store::execute_raw(&wrong, "SELECT 1").await.unwrap_err();
    assert!(format!("{said:?}").contains("password authentication failed"), "{said:?}");
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why_at_once() {
    let dir = tempfile::tempdir().unwrap();
    postgres(dir.path(), Source::Any).await.unwrap().stop().await.unwrap();
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = postgres::Options {
        data: Data::Persistent(dir.path().to_owned()),
        port: taken.local_addr().unwrap().port(),
        ..postgres::Options::temporary()
    };
    let said = Postgres::start(options, &Progress::silent()).await.unwrap_err().to_string();
    assert!(said.contains("ddress already in use"), "{said}");
    dirs::erase(dir.path()).unwrap();
}

#[tokio::test]
async fn redis_keeps_its_data_when_it_is_stopped_and_most_of_it_when_it_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let first = redis(dir.path()).await;
    say(&first, "SET kept 1\r\n", "+OK\r\n").await;
    first.stop().await.unwrap();
    let second = redis(dir.path()).await;
    say(&second, "GET kept\r\n", "$1\r\n1\r\n").await;
    kill(second.pid());
    let third = redis(dir.path()).await;
    say(&third, "INCR kept\r\n", ":2\r\n").await;
}
