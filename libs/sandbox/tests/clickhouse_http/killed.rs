//! Killed with -9, a front has every row it answered for.

use clickhouse::{Client, Row};
use rustix::process::{Pid, Signal, kill_process};
use sandbox::Data;
use sandbox::clickhouse::Options;
use serde::Serialize;

use crate::client::{front, of_front, options};

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
async fn killed_between_inserts_it_has_all_that_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let start = async || front(Options { data: Data::Persistent(dir.path().to_owned()), ..options() }).await;
    let mut answered = 0;
    for round in 0..5_u64 {
        let front = start().await;
        let client = of_front(&front);
        let create = "CREATE TABLE IF NOT EXISTS numbered (n UInt64) ENGINE = MergeTree ORDER BY n";
        client.query(create).execute().await.unwrap();
        let found: u64 = client.query("SELECT count() FROM numbered").fetch_one().await.unwrap();
        assert_eq!(found, answered, "round {round}");
        for _ in 0..20 {
            insert(&client, answered).await.unwrap();
            answered += 1;
        }
        let pid = Pid::from_raw(i32::try_from(front.pid()).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    }
    let front = start().await;
    let found: (u64, u64) =
        of_front(&front).query("SELECT count(), uniqExact(n) FROM numbered").fetch_one().await.unwrap();
    assert_eq!(found, (answered, answered));
    front.stop().await.unwrap();
}

#[tokio::test]
async fn told_to_end_it_ends_and_the_next_start_finds_the_data() {
    let dir = tempfile::tempdir().unwrap();
    let start = async || front(Options { data: Data::Persistent(dir.path().to_owned()), ..options() }).await;
    let first = start().await;
    let (url, password) = (first.url(), first.password().to_owned());
    let client = of_front(&first);
    client.query("CREATE DATABASE kept").execute().await.unwrap();
    client.query("CREATE TABLE kept.t (n UInt64) ENGINE = MergeTree ORDER BY n").execute().await.unwrap();
    client.query("INSERT INTO kept.t VALUES (1), (2)").execute().await.unwrap();
    first.stop().await.unwrap();
    assert!(Client::default().with_url(url).query("SELECT 1").execute().await.is_err());
    let second = start().await;
    assert_eq!(second.password(), password);
    assert_eq!(of_front(&second).query("SELECT sum(n) FROM kept.t").fetch_one::<u64>().await.unwrap(), 3);
}
