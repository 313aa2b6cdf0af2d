//! A streamed response equals the buffered one.

use bytes::Bytes;
use sandbox::test::clickhouse;

use crate::client::{Response, post};

/// Returns the streamed and the buffered response. `wait_end_of_query` makes the interface buffer the output.
async fn streamed_and_buffered(sql: &str) -> (Response, Response) {
    let test = clickhouse().await;
    let streamed = post(&test, &[], sql.to_owned()).await;
    let buffered = post(&test, &[("wait_end_of_query", "1")], sql.to_owned()).await;
    (streamed, buffered)
}

#[tokio::test]
async fn a_streamed_response_has_one_header() {
    for format in [
        "TabSeparated",
        "TSVWithNames",
        "TabSeparatedWithNamesAndTypes",
        "CSV",
        "CSVWithNames",
        "CSVWithNamesAndTypes",
        "JSONEachRow",
        "JSONCompactEachRow",
        "JSONCompactEachRowWithNames",
        "JSONCompactEachRowWithNamesAndTypes",
        "RowBinary",
        "RowBinaryWithNames",
        "RowBinaryWithNamesAndTypes",
        "Native",
    ] {
        let sql = format!("SELECT number, toString(number) AS `a\n\"b` FROM numbers(300000) FORMAT {format}");
        let (streamed, buffered) = streamed_and_buffered(&sql).await;
        assert!(streamed.header("x-clickhouse-exception-tag").len() == 16, "{format} was buffered");
        assert!(
            streamed.body == buffered.body,
            "{format}: {} and {} bytes",
            streamed.body.len(),
            buffered.body.len()
        );
    }
}

#[tokio::test]
async fn empty_sparse_and_total_responses_are_equal_when_streamed() {
    for select in [
        "SELECT 1 AS a WHERE 0",
        "SELECT number FROM numbers(10000000) WHERE number % 3000000 = 1 SETTINGS max_threads = 1",
        "SELECT number % 3 AS k, count() FROM numbers(10) GROUP BY k WITH TOTALS ORDER BY k",
        "SELECT '' FROM numbers(100000)",
    ] {
        for format in ["RowBinaryWithNamesAndTypes", "CSVWithNames", "RowBinary"] {
            let (sql, settings) = select.split_once(" SETTINGS").unwrap_or((select, " max_threads = 2"));
            let (streamed, buffered) =
                streamed_and_buffered(&format!("{sql} FORMAT {format} SETTINGS{settings}")).await;
            assert!(
                streamed.body == buffered.body,
                "{format} of {sql}: {:?}, {:?}",
                streamed.text(),
                buffered.text()
            );
        }
    }
}

#[tokio::test]
async fn statements_other_than_select_respond() {
    let test = clickhouse().await;
    for (sql, expected) in [
        ("SHOW DATABASES LIKE 'system'", "system\n"),
        ("EXISTS TABLE system.one", "1\n"),
        ("(SELECT 1) UNION ALL SELECT 1", "1\n1\n"),
        ("WITH 2 AS x SELECT x", "2\n"),
        ("SELECT 1 FORMAT JSONColumns", "{\n\t\"1\": [1]\n}\n"),
        ("SELECT 1 FORMAT Null", ""),
    ] {
        assert_eq!(post(&test, &[], sql).await.text(), expected, "{sql}");
    }
}

#[tokio::test]
async fn compress_uses_clickhouses_own_blocks() {
    let test = clickhouse().await;
    let response =
        post(&test, &[("compress", "1")], "SELECT number FROM numbers(100000) FORMAT RowBinary").await;
    // The same blocks can be inserted again.
    let here = ("database", &*test.database);
    post(&test, &[here], "CREATE TABLE n (n UInt64) ENGINE = Memory").await;
    let arguments = [here, ("decompress", "1"), ("query", "INSERT INTO n FORMAT RowBinary")];
    assert_eq!(post(&test, &arguments, Bytes::clone(&response.body)).await.text(), "");
    assert_eq!(post(&test, &[here], "SELECT count(), sum(n) FROM n").await.text(), "100000\t4999950000\n");
}
