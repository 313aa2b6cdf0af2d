//! An answer sent in pieces is the answer sent whole.

use bytes::Bytes;
use sandbox::test::clickhouse;

use crate::client::{Answer, post};

/// `wait_end_of_query` has the engine hand everything out at once.
async fn both_ways(sql: &str) -> (Answer, Answer) {
    let test = clickhouse().await;
    let pieces = post(&test, &[], sql.to_owned()).await;
    let whole = post(&test, &[("wait_end_of_query", "1")], sql.to_owned()).await;
    (pieces, whole)
}

#[tokio::test]
async fn headers_stand_once_however_many_pieces_there_are() {
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
        let (pieces, whole) = both_ways(&sql).await;
        assert!(pieces.header("x-clickhouse-exception-tag").len() == 16, "{format} came whole");
        assert!(pieces.body == whole.body, "{format}: {} and {} bytes", pieces.body.len(), whole.body.len());
    }
}

#[tokio::test]
async fn empty_answers_sparse_ones_and_totals_are_the_same_in_pieces() {
    for select in [
        "SELECT 1 AS a WHERE 0",
        "SELECT number FROM numbers(10000000) WHERE number % 3000000 = 1 SETTINGS max_threads = 1",
        "SELECT number % 3 AS k, count() FROM numbers(10) GROUP BY k WITH TOTALS ORDER BY k",
        "SELECT '' FROM numbers(100000)",
    ] {
        for format in ["RowBinaryWithNamesAndTypes", "CSVWithNames", "RowBinary"] {
            let (sql, settings) = select.split_once(" SETTINGS").unwrap_or((select, " max_threads = 2"));
            let (pieces, whole) = both_ways(&format!("{sql} FORMAT {format} SETTINGS{settings}")).await;
            assert!(pieces.body == whole.body, "{format} of {sql}: {:?}, {:?}", pieces.text(), whole.text());
        }
    }
}

#[tokio::test]
async fn statements_that_are_no_select_answer_too() {
    let test = clickhouse().await;
    for (sql, wanted) in [
        ("SHOW DATABASES LIKE 'system'", "system\n"),
        ("EXISTS TABLE system.one", "1\n"),
        ("(SELECT 1) UNION ALL SELECT 1", "1\n1\n"),
        ("WITH 2 AS x SELECT x", "2\n"),
        ("SELECT 1 FORMAT JSONColumns", "{\n\t\"1\": [1]\n}\n"),
        ("SELECT 1 FORMAT Null", ""),
    ] {
        assert_eq!(post(&test, &[], sql).await.text(), wanted, "{sql}");
    }
}

#[tokio::test]
async fn compress_answers_in_clickhouses_own_blocks() {
    let test = clickhouse().await;
    let answer =
        post(&test, &[("compress", "1")], "SELECT number FROM numbers(100000) FORMAT RowBinary").await;
    // Sent back, the same blocks are the same rows.
    let here = ("database", &*test.database);
    post(&test, &[here], "CREATE TABLE n (n UInt64) ENGINE = Memory").await;
    let arguments = [here, ("decompress", "1"), ("query", "INSERT INTO n FORMAT RowBinary")];
    assert_eq!(post(&test, &arguments, Bytes::clone(&answer.body)).await.text(), "");
    assert_eq!(post(&test, &[here], "SELECT count(), sum(n) FROM n").await.text(), "100000\t4999950000\n");
}
