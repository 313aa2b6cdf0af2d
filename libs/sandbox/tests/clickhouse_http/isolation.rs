//! Requests are isolated from each other and run concurrently.

use std::time::{Duration, Instant};

use sandbox::test::clickhouse;

use crate::client::{client, client_of, post};

#[tokio::test]
async fn settings_parameters_database_and_temporary_tables_end_with_their_request() {
    let test = clickhouse().await;
    let set = [("max_threads", "7"), ("param_x", "secret"), ("database", "system")];
    let seen = post(&test, &set, "SELECT getSetting('max_threads'), {x:String}, currentDatabase()").await;
    assert_eq!(seen.text(), "7\tsecret\tsystem\n");
    // Enough requests to reuse every session of a pool.
    for _ in 0..20 {
        post(&test, &set, "SET max_block_size = 77").await;
        post(&test, &set, "CREATE TEMPORARY TABLE leak (a UInt8)").await;
        post(&test, &set, "USE information_schema").await;
        let next = post(
            &test,
            &[],
            "SELECT getSetting('max_threads') = 7, getSetting('max_block_size') = 77, currentDatabase()",
        )
        .await;
        assert_eq!(next.text(), "0\t0\tdefault\n");
        assert_eq!(post(&test, &[], "SELECT {x:String}").await.header("x-clickhouse-exception-code"), "456");
        assert_eq!(post(&test, &[], "SELECT * FROM leak").await.header("x-clickhouse-exception-code"), "60");
    }
}

#[tokio::test]
async fn a_setting_may_contain_any_text() {
    let test = clickhouse().await;
    let nasty = "a'b\\c`d, max_threads = 1 -- ";
    let response =
        post(&test, &[("log_comment", nasty)], "SELECT getSetting('log_comment') FORMAT TSVRaw").await;
    assert_eq!(response.text(), format!("{nasty}\n"));
    let refused = post(&test, &[("no_such_setting", "1")], "SELECT 1").await;
    assert_eq!(refused.header("x-clickhouse-exception-code"), "115");
    let refused = post(&test, &[("session_id", "s")], "SELECT 1").await;
    assert_eq!(refused.header("x-clickhouse-exception-code"), "48");
}

#[tokio::test]
async fn statements_run_concurrently() {
    let client = client().await;
    let started = Instant::now();
    let sleeps: Vec<_> = (0..4)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.query("SELECT sleep(1)").fetch_one::<u8>().await })
        })
        .collect();
    for sleep in sleeps {
        sleep.await.unwrap().unwrap();
    }
    let took = started.elapsed();
    assert!(took < Duration::from_millis(3_500), "four sleeps of one second ran sequentially: {took:?}");
}

#[tokio::test]
async fn concurrent_clients_lose_no_rows() {
    let client = client_of(&clickhouse().await);
    client
        .query("CREATE TABLE shared (task UInt32, n UInt32) ENGINE = MergeTree ORDER BY (task, n)")
        .execute()
        .await
        .unwrap();
    let tasks: Vec<_> = (0..16_u32)
        .map(|task| {
            let client = client.clone();
            tokio::spawn(async move {
                for n in 0..10_u32 {
                    let mut insert = client.insert_formatted_with("INSERT INTO shared FORMAT CSV").buffered();
                    insert.write(format!("{task},{n}\n").as_bytes()).await.unwrap();
                    insert.end().await.unwrap();
                    let count = client
                        .query("SELECT count() FROM shared WHERE task = ?")
                        .bind(task)
                        .fetch_one::<u64>();
                    assert_eq!(count.await.unwrap(), u64::from(n) + 1);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(client.query("SELECT uniqExact(task, n) FROM shared").fetch_one::<u64>().await.unwrap(), 160);
}
