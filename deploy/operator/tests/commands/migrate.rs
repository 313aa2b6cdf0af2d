//! `migrate`: from nothing, again, twice at once, on a newer schema, and beside databases that are starting.

use std::io::{BufRead as _, BufReader};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::installation::{Installation, wait};

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_installation_is_planned_and_migrated_and_a_second_run_changes_nothing() {
    let installation = Installation::empty().await;
    let plan = installation.ok(&["migrate", "--plan"]);
    assert!(plan.contains("0001_accounts") && plan.contains("0001_events"), "{plan}");
    let (_, json) = installation.json(&["migrate", "--plan", "--json"]);
    let pending = json["postgres"].as_array().unwrap().len();
    assert!(pending > 50, "{json}");
    assert_eq!(installation.ok(&["migrate", "--plan"]), plan, "a plan changes nothing");

    let done = installation.ok(&["migrate"]);
    assert!(done.starts_with(&format!("Applied {pending} migrations of Postgres and 4 of")), "{done}");
    assert!(installation.ok(&["migrate", "--plan"]).contains("No migration is pending"));
    assert_eq!(installation.ok(&["migrate"]), "No migration was pending.\n");
    let actions = installation.ok(&["admin", "actions"]);
    let lines: Vec<&str> = actions.lines().collect();
    assert!(lines.len() == 2 && actions.matches("  migrate  -  ").count() == 2, "{actions}");
    assert!(lines[0].contains(r#""state":"ended""#), "{actions}");
    assert!(
        lines[1].contains(r#""state":"begun""#) && lines[1].contains(&format!(r#""postgres":{pending}"#)),
        "{actions}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_stopped_is_continued_and_heavy_statements_are_named() {
    let installation = Installation::new().await;
    let undo = "drop table operator_actions; delete from _sqlx_migrations where version = 189";
    installation.execute(undo).await;
    let plan = installation.ok(&["migrate", "--plan"]);
    assert!(plan.starts_with("Postgres: 1 pending\n  0189_operator_actions\n"), "{plan}");
    assert!(plan.contains("None takes long") && !plan.contains("ClickHouse:"), "{plan}");
    let done = installation.ok(&["migrate"]);
    assert!(done.starts_with("Applied 1 migrations of Postgres and 0 of"), "{done}");

    installation.execute("delete from _sqlx_migrations where version in (2, 29, 60)").await;
    let (_, json) = installation.json(&["migrate", "--plan", "--json"]);
    let heavy: Vec<_> = json["postgres"].as_array().unwrap().iter().map(|one| one["heavy"].clone()).collect();
    assert_eq!(heavy[0], serde_json::json!([]), "a new table is empty");
    let index = "create index on forms: builds an index, and writes to the table wait for it";
    assert_eq!(heavy[1], serde_json::json!(["update forms: changes its rows", index]));
    assert!(heavy[2].to_string().contains("alter table page_versions: reads the whole table"), "{json}");
    let plan = installation.ok(&["migrate", "--plan"]);
    assert!(plan.contains("heavy: update forms") && plan.contains("at a quiet hour"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_at_once_are_safe() {
    let installation = Installation::empty().await;
    let both = [installation.start(&["migrate"]), installation.start(&["migrate"])].map(wait);
    assert!(both.iter().all(|ended| ended.code == 0), "{both:?}");
    let idle = both.iter().filter(|ended| ended.stdout.contains("No migration was pending")).count();
    assert_eq!(idle, 1, "one works, and the other finds nothing to do: {both:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_not_touched() {
    let installation = Installation::new().await;
    let newer = "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
                 values (9999, 'of tomorrow', true, '', 0)";
    installation.execute(newer).await;
    let release = |number: i32| {
        format!("insert into schema_releases (release, name) values ({number}, 'release {number}')")
    };
    installation.execute(&release(store::SCHEMA_RELEASE + 1)).await;
    let done = installation.ok(&["migrate"]);
    assert!(done.contains("The next release has migrated") && done.contains("Postgres 9999"), "{done}");
    installation.execute("delete from _sqlx_migrations where version = 189").await;
    let error = installation.error(&["migrate"]);
    assert!(error.contains("a newer release has migrated"), "it lacks one of this program's: {error}");

    let installation = Installation::new().await;
    installation.execute(newer).await;
    installation.execute(&release(store::SCHEMA_RELEASE + 2)).await;
    let error = installation.error(&["migrate"]);
    assert!(error.contains("a newer release has migrated") && error.contains("Postgres 9999"), "{error}");
    assert!(installation.ok(&["migrate", "--plan"]).contains("A newer release has migrated"));
    assert_eq!(installation.ok(&["admin", "actions"]), "Operators have changed nothing.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_fails_is_in_the_log() {
    let installation = Installation::empty().await;
    installation.ok(&["migrate"]);
    installation.execute("truncate operator_actions; delete from _sqlx_migrations where version = 188").await;
    installation.error(&["migrate"]);
    let actions = installation.ok(&["admin", "actions"]);
    let lines: Vec<&str> = actions.lines().collect();
    assert!(lines.len() == 2 && lines[1].contains(r#""state":"begun""#), "{actions}");
    assert!(lines[0].contains("migrating Postgres") && lines[0].contains(r#""state":"ended""#), "{actions}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_waits_for_databases_that_are_starting() {
    let mut installation = Installation::empty().await;
    let reserved = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = reserved.local_addr().unwrap();
    drop(reserved);
    let (user, rest) = installation.database.url.rsplit_once('@').unwrap();
    let (server, name) = rest.split_once('/').unwrap();
    let server = server.to_owned();
    installation.set.push(format!("store.url={user}@{address}/{name}"));

    let error = installation.error(&["migrate"]);
    assert!(error.contains("connecting to Postgres"), "{error}");
    let error = installation.error(&["migrate", "--wait", "1s"]);
    assert!(error.contains("no connection within 1s: Postgres:") && error.contains("refused"), "{error}");

    let mut started = installation.start(&["migrate", "--wait", "60s"]);
    let mut first = String::new();
    let mut stderr = BufReader::new(started.stderr.take().unwrap());
    stderr.read_line(&mut first).unwrap();
    assert!(first.starts_with("waiting for Postgres"), "{first}");
    let listener = TcpListener::bind(address).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
    });
    started.stderr = Some(stderr.into_inner());
    let ended = wait(started);
    assert!(ended.code == 0 && ended.stdout.starts_with("Applied "), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_waiting_does_not_cure_ends_the_wait() {
    let mut installation = Installation::new().await;
    installation.set.push(format!("store.url={}_missing", installation.database.url));
    let error = installation.error(&["migrate", "--wait", "60s"]);
    assert!(error.contains("connecting to Postgres") && error.contains("does not exist"), "{error}");
}
