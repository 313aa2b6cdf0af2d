//! `check`: all is well, and each fault is named with what to do.

use serde_json::Value;

use crate::installation::{Installation, MASTER_KEY, PEPPER};

/// Returns the exit code and the finding of a check.
fn finding(installation: &Installation, check: &str) -> (i32, Value) {
    let (code, findings) = installation.json(&["check", "--json"]);
    let found = findings.as_array().unwrap().iter().find(|finding| finding["check"] == check);
    (code, found.unwrap_or_else(|| panic!("no {check} in {findings}")).clone())
}

/// Requires that a check failed with this text, that it says what to do, and that the exit code is 1.
fn assert_failed(installation: &Installation, check: &str, text: &str) {
    let (code, found) = finding(installation, check);
    assert_eq!(code, 1, "{found}");
    assert_eq!(found["status"], "failed", "{found}");
    assert!(found["detail"].as_str().unwrap().contains(text), "{found}");
    assert!(found["advice"].as_str().is_some_and(|advice| advice.len() > 10), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_installation_passes_and_no_secret_is_shown() {
    let installation = Installation::new().await;
    let (code, findings) = installation.json(&["check", "--json"]);
    assert_eq!(code, 0, "{findings}");
    let findings = findings.as_array().unwrap();
    for check in [
        "postgres",
        "postgres.version",
        "postgres.connections",
        "clock",
        "clickhouse",
        "clickhouse.version",
        "clickhouse.shards",
        "redis",
        "redis.version",
        "blobs",
        "schema",
        "keys.master",
        "keys.pepper",
    ] {
        assert!(findings.iter().any(|finding| finding["check"] == check), "{check}: {findings:?}");
    }
    assert!(installation.blobs.files().is_empty(), "the test object is deleted");
    let text = installation.ok(&["check"]);
    assert!(text.contains("ok       schema") && text.contains(", 0 failed"), "{text}");
    for secret in [MASTER_KEY, PEPPER, &installation.clickhouse.password] {
        assert!(secret.is_empty() || !text.contains(secret), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_stores_fail_each_by_itself() {
    let mut installation = Installation::new().await;
    installation.set.push("redis.url=redis://127.0.0.1:1".to_owned());
    assert_failed(&installation, "redis", "refused");
    assert_eq!(finding(&installation, "postgres").1["status"], "ok");
    installation.set.push("warehouse.url=http://127.0.0.1:1".to_owned());
    assert_failed(&installation, "clickhouse", "");
    assert_eq!(finding(&installation, "keys.master").1["status"], "ok", "the others are checked");
    installation.set.push("store.url=postgres://u:hunter2@127.0.0.1:1/db".to_owned());
    assert_failed(&installation, "postgres", "refused");
    let ended = installation.run(&["check"]);
    assert!(!ended.stdout.contains("hunter2") && !ended.stderr.contains("hunter2"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_is_missing_old_new_or_edited() {
    let empty = Installation::empty().await;
    assert_failed(&empty, "schema", "migrations are pending");
    assert_failed(&empty, "keys.master", "");

    let installation = Installation::new().await;
    installation.execute("delete from _sqlx_migrations where version = 189").await;
    assert_failed(&installation, "schema", "1 migration is pending");
    let newer = "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
                 select 9999, 'of tomorrow', true, '', 0
                 union all select 189, 'x', true, checksum, 0 from _sqlx_migrations where version = 1";
    installation.execute(newer).await;
    assert_failed(&installation, "schema", "0189_operator_actions");
    let installation = Installation::new().await;
    installation.execute(&newer.replace("union all", "where true --")).await;
    let (code, found) = finding(&installation, "schema");
    assert_eq!((code, &found["status"]), (0, &Value::from("warning")), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_short_and_unused_keys_are_named() {
    let mut installation = Installation::new().await;
    installation.set.push("secrets.master_key=".to_owned());
    assert_failed(&installation, "keys.master", "secrets.master_key is empty");
    installation.set.push("secrets.key_pepper=short".to_owned());
    assert_failed(&installation, "keys.pepper", "at least 16 characters");
    installation.set.push(format!("secrets.key_pepper={PEPPER},{}", "c4".repeat(32)));
    installation.set.push(format!("secrets.master_key=2027:{},{MASTER_KEY}", "5e".repeat(32)));
    for (check, text) in [("keys.pepper", "2 peppers"), ("keys.master", "key `0` is unused")] {
        let (code, found) = finding(&installation, check);
        assert_eq!((code, &found["status"]), (0, &Value::from("warning")), "{found}");
        assert!(found["detail"].as_str().unwrap().contains(text), "{found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_blob_store_fails() {
    let mut installation = Installation::new().await;
    installation.set.push("http.edges=2".to_owned());
    let ended = installation.run(&["check"]);
    assert!(ended.code == 1 && (ended.stdout + &ended.stderr).contains("s3://"), "several edges, one folder");
    installation.set.push("http.edges=1".to_owned());
    installation.set.push("blobs.url=/dev/null/blobs".to_owned());
    assert_failed(&installation, "blobs", "");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_edges_settings_are_checked_too() {
    let mut installation = Installation::new().await;
    installation.set.push("http.base_url=https://app.runtime.example".to_owned());
    let (code, found) = finding(&installation, "settings.tls");
    assert_eq!((code, &found["status"]), (0, &Value::from("warning")), "{found}");
    installation.set.push("listen.https=".to_owned());
    assert_failed(&installation, "settings", "nothing serves `http.base_url` over TLS");
    installation.set.push("listen.https=0.0.0.0:8443".to_owned());
    let (code, findings) = installation.json(&["check", "--json"]);
    assert!(code == 0 && !findings.to_string().contains(r#""settings"#), "{findings}");
    installation.set.push("outbound.allow=127.0.0.0/8".to_owned());
    assert_failed(&installation, "settings", "`outbound.allow` has `127.0.0.0/8`");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_no_service_starts_with_are_findings() {
    let mut installation = Installation::new().await;
    installation.set.push("http.base_url=https://app.runtime.example".to_owned());
    installation.set.push("secrets.key_pepper=changeme-changeme".to_owned());
    assert_failed(&installation, "settings", "`secrets.key_pepper` has an example value");
    let text = installation.run(&["check"]).stdout;
    assert!(text.contains("failed   settings") && !text.contains("changeme"), "{text}");
    assert!(installation.error(&["migrate"]).contains("these settings are not safe"));
}
