//! Errors, parameters and headers as in ClickHouse.

use axum::http::StatusCode;
use bytes::Bytes;
use clickhouse::error::Error;
use sandbox::test::{TestClickHouse, clickhouse};

use crate::client::{client, client_of, post, send};

#[tokio::test]
async fn invalid_statements_get_clickhouses_codes_and_statuses() {
    let test = clickhouse().await;
    let cases = [
        ("SELECT * FROM nowhere", 60, 404),
        ("SELECT * FROM no_database.x", 81, 404),
        ("SELECT no_column", 47, 404),
        ("SELECT no_function()", 46, 404),
        ("SELECT 1 SETTINGS no_such_setting = 1", 115, 404),
        ("SELECT 1 FORMAT NoSuchFormat", 73, 404),
        ("SELEC 1", 62, 400),
        ("SELECT 1; SELECT 2", 62, 400),
        ("SELECT {missing:UInt8}", 456, 500),
        ("SELECT throwIf(1)", 395, 500),
        ("INSERT INTO nowhere VALUES (1)", 60, 404),
        ("SELECT toInt8('x')", 6, 400),
    ];
    for (sql, code, status) in cases {
        let response = post(&test, &[("database", &test.database)], sql).await;
        let found = (response.header("x-clickhouse-exception-code").to_owned(), response.status.as_u16());
        assert_eq!(found, (code.to_string(), status), "{sql}: {}", response.text());
        assert!(response.text().starts_with(&format!("Code: {code}. DB::")), "{sql}: {}", response.text());
    }
}

#[tokio::test]
async fn reports_an_unknown_database_in_the_url() {
    let response = post(&clickhouse().await, &[("database", "no_database")], "SELECT 1").await;
    assert_eq!((response.status.as_u16(), response.header("x-clickhouse-exception-code")), (404, "81"));
}

#[tokio::test]
async fn the_crate_reports_an_unknown_table_with_its_name() {
    let error = client().await.query("SELECT count() FROM nowhere").fetch_one::<u64>().await.unwrap_err();
    assert!(
        matches!(&error, Error::BadResponse(text) if text.contains("UNKNOWN_TABLE") && text.contains("nowhere")),
        "{error}"
    );
}

#[tokio::test]
async fn parameters_and_binds_arrive_unchanged() {
    let client = client().await;
    let nasty = "it's\ta \\ \"line\"\n`end` {x:String} ; -- \0";
    let (text, number): (String, i64) = client
        .query("SELECT {text:String}, {number:Int64}")
        .param("text", nasty)
        .param("number", -7)
        .fetch_one()
        .await
        .unwrap();
    assert_eq!((text.as_str(), number), (nasty, -7));
    let bound: String = client.query("SELECT ?").bind(nasty).fetch_one().await.unwrap();
    assert_eq!(bound, nasty);
}

#[tokio::test]
async fn accepts_parameters_in_the_url_and_in_inserts() {
    let test = clickhouse().await;
    let response =
        post(&test, &[("param_a", "1\\t2"), ("query", "SELECT {a:String} FORMAT TSVRaw")], "").await;
    assert_eq!(response.text(), "1\t2\n");
    let arguments = [("database", &*test.database), ("param_t", "with_param"), ("param_v", "9")];
    post(&test, &arguments, "CREATE TABLE {t:Identifier} (v UInt8) ENGINE = Memory").await;
    post(&test, &arguments, "INSERT INTO {t:Identifier} VALUES ({v:UInt8})").await;
    assert_eq!(post(&test, &arguments, "SELECT v FROM with_param").await.text(), "9\n");
}

#[tokio::test]
async fn a_response_has_its_format_its_id_and_the_rows_read() {
    let test = clickhouse().await;
    let arguments =
        [("query_id", "mine"), ("query", "SELECT number FROM numbers(3) FORMAT JSONCompactEachRow")];
    let response = post(&test, &arguments, "").await;
    assert_eq!(response.text(), "[0]\n[1]\n[2]\n");
    assert_eq!(response.header("x-clickhouse-query-id"), "mine");
    assert_eq!(response.header("x-clickhouse-format"), "JSONCompactEachRow");
    assert!(response.header("x-clickhouse-summary").contains(r#""read_rows":"3""#), "{response:?}");
    assert!(response.header("content-type").starts_with("application/x-ndjson"), "{response:?}");
}

#[tokio::test]
async fn a_get_reads_and_does_not_write() {
    let test = clickhouse().await;
    let get = async |sql| {
        send(&test, "GET", &[("database", &*test.database), ("query", sql)], &[], Bytes::new()).await
    };
    assert_eq!(get("SELECT 1").await.text(), "1\n");
    let refused = get("CREATE TABLE t (a UInt8) ENGINE = Memory").await;
    assert_eq!(refused.header("x-clickhouse-exception-code"), "164", "{}", refused.text());
}

#[tokio::test]
async fn answers_pings_and_admits_only_its_user() {
    let test = clickhouse().await;
    let other_user = TestClickHouse { password: "wrong".to_owned(), ..test.clone() };
    let refused = post(&other_user, &[], "SELECT 1").await;
    assert_eq!(
        (refused.status, refused.header("x-clickhouse-exception-code")),
        (StatusCode::FORBIDDEN, "516")
    );
    assert_eq!(send(&other_user, "GET", &[], &[], Bytes::new()).await.status, StatusCode::FORBIDDEN);
    let basic = format!(
        "Basic {}",
        base64::Engine::encode(
            &base64::engine::general_purpose::STANDARD,
            format!("{}:{}", test.user, test.password)
        )
    );
    let without_user = TestClickHouse {
        url: test.url.clone(),
        user: "default".to_owned(),
        password: test.password.clone(),
        database: String::new(),
    };
    assert_eq!(
        send(&without_user, "POST", &[], &[("authorization", &basic)], Bytes::from("SELECT 2")).await.text(),
        "2\n"
    );
}

#[tokio::test]
async fn a_statement_that_fails_after_its_first_output_does_not_affect_later_responses() {
    let client = client_of(&clickhouse().await);
    // It fails after nearly three megabytes of output; one megabyte is buffered.
    let fails = "SELECT number, throwIf(number = 300000) AS x FROM numbers(2000000)
                 SETTINGS max_block_size = 10000, max_threads = 1";
    for turn in 0..50 {
        let mut rows = client.query(fails).fetch::<(u64, u8)>().unwrap();
        let mut seen = 0;
        let error = loop {
            match rows.next().await {
                Ok(Some(_)) => seen += 1,
                Ok(None) => {
                    panic!("turn {turn}: a truncated response was accepted as complete after {seen} rows")
                }
                Err(error) => break error,
            }
        };
        assert!(seen > 0, "turn {turn}: {error}");
        assert!(
            error.to_string().contains("FUNCTION_THROW_IF_VALUE_IS_NON_ZERO"),
            "turn {turn}, {seen} rows: {error}"
        );
        let clean: Vec<u64> = client.query("SELECT number FROM numbers(3)").fetch_all().await.unwrap();
        assert_eq!(clean, [0, 1, 2], "turn {turn}");
    }
}

#[tokio::test]
async fn failing_statements_do_not_affect_concurrent_ones() {
    let client = client().await;
    let fails = "SELECT throwIf(number = 300000) FROM numbers(400000) SETTINGS max_block_size = 1000, max_threads = 1";
    let tasks: Vec<_> = (0..8)
        .map(|task: u64| {
            let client = client.clone();
            tokio::spawn(async move {
                for turn in 0..25 {
                    if task.is_multiple_of(2) {
                        client.query(fails).fetch_all::<u8>().await.unwrap_err();
                        client.query(&format!("{fails} FORMAT JSON")).execute().await.unwrap_err();
                    } else {
                        let expected = task * 1000 + turn;
                        assert_eq!(
                            client
                                .query("SELECT toUInt64(?)")
                                .bind(expected)
                                .fetch_one::<u64>()
                                .await
                                .unwrap(),
                            expected
                        );
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}
