//! Inserts: every format by name, deduplication tokens, and interrupted inserts.

use bytes::Bytes;
use clickhouse::Row;
use sandbox::test::{TestClickHouse, clickhouse};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{client_of, post};

#[derive(Row, Serialize, Deserialize)]
struct Pair {
    a: u64,
    b: String,
}

async fn table() -> TestClickHouse {
    let test = clickhouse().await;
    let create = "CREATE TABLE t (a UInt64, b String) ENGINE = MergeTree ORDER BY a";
    client_of(&test).query(create).execute().await.unwrap();
    test
}

async fn count(test: &TestClickHouse) -> u64 {
    client_of(test).query("SELECT count() FROM t").fetch_one().await.unwrap()
}

#[tokio::test]
async fn every_format_works_by_name_with_rows_in_the_body_or_the_text() {
    let test = table().await;
    let here = ("database", &*test.database);
    let bodies: [(&str, &[u8]); 8] = [
        ("RowBinary", b"\x01\0\0\0\0\0\0\0\x02\n\n"),
        ("RowBinaryWithNamesAndTypes", b"\x02\x01a\x01b\x06UInt64\x06String\x01\0\0\0\0\0\0\0\x02\n\n"),
        ("Native", b"\x02\x01\x01a\x06UInt64\x01\0\0\0\0\0\0\0\x01b\x06String\x02\n\n"),
        ("JSONEachRow", br#"{"a":1,"b":"\n\n"}"#),
        ("CSV", b"1,\"\n\n\"\n"),
        ("TabSeparated", b"1\t\\n\\n\n"),
        ("Values", b"(1,'\n\n')"),
        ("JSONCompactEachRow", br#"[1,"\n\n"]"#),
    ];
    for (format, rows) in bodies {
        let statement = format!("INSERT INTO t (a, b) FORMAT {format}");
        let response = post(&test, &[here, ("query", &statement)], Bytes::copy_from_slice(rows)).await;
        assert_eq!(response.text(), "", "{format}");
        assert!(
            response.header("x-clickhouse-summary").contains(r#""written_rows":"1""#),
            "{format}: {response:?}"
        );
        let with_rows = [b"INSERT INTO t (a, b) FORMAT ", format.as_bytes(), b"\n", rows].concat();
        assert_eq!(post(&test, &[here], with_rows).await.text(), "", "{format}");
    }
    assert_eq!(count(&test).await, 16);
    let intact = "SELECT countIf(a = 1 AND b = '\n\n') FROM t";
    assert_eq!(client_of(&test).query(intact).fetch_one::<u64>().await.unwrap(), 16);
}

#[tokio::test]
async fn accepts_an_insert_of_a_select_and_of_default_values() {
    let test = table().await;
    let here = ("database", &*test.database);
    assert_eq!(
        post(&test, &[here], "INSERT INTO t SELECT number, toString(number) FROM numbers(5)").await.text(),
        ""
    );
    assert_eq!(post(&test, &[here], "INSERT INTO t (a) VALUES (5), (6);").await.text(), "");
    assert_eq!(post(&test, &[here], "WITH 7 AS x INSERT INTO t SELECT x, 'with'").await.text(), "");
    assert_eq!(count(&test).await, 8);
}

#[tokio::test]
async fn a_deduplication_token_ignores_a_repeated_insert() {
    let test = table().await;
    let window = "ALTER TABLE t MODIFY SETTING non_replicated_deduplication_window = 100";
    client_of(&test).query(window).execute().await.unwrap();
    for token in ["one", "one", "two", "one", "two"] {
        let client = client_of(&test).with_setting("insert_deduplication_token", token);
        let mut insert = client.insert::<Pair>("t").await.unwrap();
        for a in 0..10_000 {
            insert.write(&Pair { a, b: "same rows under both tokens".to_owned() }).await.unwrap();
        }
        insert.end().await.unwrap();
    }
    assert_eq!(count(&test).await, 20_000);
}

#[tokio::test]
async fn an_incomplete_row_is_an_error_and_writes_nothing() {
    let test = table().await;
    let query = ("query", "INSERT INTO t (a, b) FORMAT RowBinary");
    let mut rows: Vec<u8> = (0..50_000_u64).flat_map(|a| [&a.to_le_bytes()[..], b"\x01x"].concat()).collect();
    rows.pop();
    let response = post(&test, &[("database", &test.database), query], rows).await;
    assert_eq!(response.header("x-clickhouse-exception-code"), "33", "{}", response.text());
    assert_eq!(count(&test).await, 0);
}

#[tokio::test]
async fn an_insert_of_a_disconnected_client_writes_nothing() {
    let test = table().await;
    let client = client_of(&test);
    // More than one block of the engine, so that it could have written the first by now.
    let mut insert = client.insert::<Pair>("t").await.unwrap();
    for a in 0..1_200_000 {
        insert.write(&Pair { a, b: String::new() }).await.unwrap();
    }
    drop(insert);
    // The server may notice the closed connection only after a later request. So this sends another interrupted body and
    // waits for the server to close that connection.
    let mut wire = TcpStream::connect(test.url.strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!(
        "POST /?database={}&query=INSERT+INTO+t+FORMAT+CSV HTTP/1.1\r\nHost: x\r\nX-ClickHouse-User: {}\r\n\
         X-ClickHouse-Key: {}\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n1,two\n\r\n",
        test.database, test.user, test.password
    );
    wire.write_all(head.as_bytes()).await.unwrap();
    wire.shutdown().await.unwrap();
    let mut response = Vec::new();
    wire.read_to_end(&mut response).await.unwrap();
    assert!(!response.starts_with(b"HTTP/1.1 200"));
    assert_eq!(count(&test).await, 0);
}

#[tokio::test]
async fn rejects_a_corrupt_compressed_block() {
    let test = table().await;
    let arguments = [
        ("database", &*test.database),
        ("decompress", "1"),
        ("query", "INSERT INTO t (a, b) FORMAT RowBinary"),
    ];
    let mut block = vec![7; 16];
    block.extend(b"\x02\x13\0\0\0\x0a\0\0\0\x01\0\0\0\0\0\0\0\x01x");
    let response = post(&test, &arguments, block).await;
    assert_eq!(response.header("x-clickhouse-exception-code"), "40", "{}", response.text());
    assert_eq!(count(&test).await, 0);
}
