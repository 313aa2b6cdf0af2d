//! After SIGKILL, every acknowledged row is still stored.

use clickhouse::{Client, Row};
use rustix::process::{Pid, Signal, kill_process};
use sandbox::Data;
use sandbox::clickhouse::Options;
use serde::Serialize;

use crate::client::{client_of_server, options, start};

#[derive(Row, Serialize)]
struct Numbered {
    n: u64,
}

async fn insert(client: &Client, n: u64) -> clickhouse::error::Result<()> {
    let mut insert = client.insert::<Numbered>("numbered").await?;
    insert.write(&Numbered { n }).await?;
    insert.end().await
}

#[tokio::test]
async fn keeps_acknowledged_inserts_after_sigkill() {
    let dir = tempfile::tempdir().unwrap();
    let restart =
        async || start(Options { data: Data::Persistent(dir.path().to_owned()), ..options() }).await;
    let mut acknowledged = 0;
    for round in 0..5_u64 {
        let server = restart().await;
        let client = client_of_server(&server);
        let create = "CREATE TABLE IF NOT EXISTS numbered (n UInt64) ENGINE = MergeTree ORDER BY n";
        client.query(create).execute().await.unwrap();
        let found: u64 = client.query("SELECT count() FROM numbered").fetch_one().await.unwrap();
        assert_eq!(found, acknowledged, "round {round}");
        for _ in 0..20 {
            insert(&client, acknowledged).await.unwrap();
            acknowledged += 1;
        }
        let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    }
    let server = restart().await;
    let found: (u64, u64) = client_of_server(&server)
        .query("SELECT count(), uniqExact(n) FROM numbered")
        .fetch_one()
        .await
        .unwrap();
    assert_eq!(found, (acknowledged, acknowledged));
    server.stop().await.unwrap();
}

#[tokio::test]
async fn stops_on_request_and_finds_its_data_on_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let restart =
        async || start(Options { data: Data::Persistent(dir.path().to_owned()), ..options() }).await;
    let first = restart().await;
    let (url, password) = (first.url(), first.password().to_owned());
    let client = client_of_server(&first);
    client.query("CREATE DATABASE stored").execute().await.unwrap();
    client.query("CREATE TABLE stored.t (n UInt64) ENGINE = MergeTree ORDER BY n").execute().await.unwrap();
    client.query("INSERT INTO stored.t VALUES (1), (2)").execute().await.unwrap();
    first.stop().await.unwrap();
    assert!(Client::default().with_url(url).query("SELECT 1").execute().await.is_err());
    let second = restart().await;
    assert_eq!(second.password(), password);
    assert_eq!(
        client_of_server(&second).query("SELECT sum(n) FROM stored.t").fetch_one::<u64>().await.unwrap(),
        3
    );
}
