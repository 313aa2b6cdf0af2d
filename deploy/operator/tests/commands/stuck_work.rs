//! `deliveries`, `outbox` and `segments`: work that got stuck.

use std::fs;

use contract::events::Event;
use sandbox::test::TestFolder;
use uuid::Uuid;

use crate::installation::Installation;

const ACCOUNT: &str = "00000000-0000-0000-0000-0000000000a1";
const OTHER: &str = "00000000-0000-0000-0000-0000000000a2";
const WEBHOOK: &str = "00000000-0000-0000-0000-0000000000b1";
const DISABLED: &str = "00000000-0000-0000-0000-0000000000b2";
const OTHERS_WEBHOOK: &str = "00000000-0000-0000-0000-0000000000b3";

/// Two accounts; the first has an active and a disabled webhook. Each webhook has a failed and a canceled delivery, an old one,
/// a delivered one and a failed ping.
async fn with_failed_deliveries() -> Installation {
    let installation = Installation::new().await;
    installation
        .execute(&format!(
            "insert into accounts (id, claimed_at, created_at) values ('{ACCOUNT}', now(), now()), ('{OTHER}', now(), now());
             insert into webhooks (id, account_id, sealed_url, events, all_forms, sealed_secret, is_active, created_at, updated_at)
             values ('{WEBHOOK}', '{ACCOUNT}', '', '{{}}', true, '', true, now(), now()),
                    ('{DISABLED}', '{ACCOUNT}', '', '{{}}', true, '', false, now(), now()),
                    ('{OTHERS_WEBHOOK}', '{OTHER}', '', '{{}}', true, '', true, now(), now());
             insert into deliveries (id, account_id, webhook_id, event, payload, state, attempts, next_attempt_at, created_at,
                                     finished_at)
             select gen_random_uuid(), w.account_id, w.id, event, '{{}}', state, 3, now(), now(), now() - ago * interval '1 hour'
             from webhooks w, (values ('submission.created', 'failed', 1), ('submission.created', 'canceled', 2),
                                      ('submission.created', 'failed', 30), ('submission.created', 'delivered', 1),
                                      ('webhook.ping', 'failed', 1)) as d (event, state, ago)"
        ))
        .await;
    installation
}

async fn count(installation: &Installation, condition: &str) -> i64 {
    let statement = format!("select count(*) from deliveries where {condition}");
    sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).fetch_one(&*installation.database.db).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_deliveries_are_counted_and_then_retried() {
    let installation = with_failed_deliveries().await;
    let ping = domain::webhooks::PING;
    installation
        .execute(&format!("update deliveries set event = '{ping}' where event = 'webhook.ping'"))
        .await;
    let args = ["deliveries", "retry", "--account", ACCOUNT];
    let output = installation.ok(&args);
    assert!(output.starts_with("1 deliveries of 1 webhooks of 1 accounts failed since"), "{output}");
    assert!(output.contains("1 more are of disabled webhooks") && output.contains("Add --yes"), "{output}");
    let args = [&args[..], &["--canceled"]].concat();
    let output = installation.ok(&args);
    assert!(
        output.starts_with("2 deliveries of 1 webhooks of 1 accounts failed or were canceled"),
        "{output}"
    );
    assert!(output.contains("2 more are of disabled webhooks") && output.contains("Add --yes"), "{output}");
    assert_eq!(count(&installation, "state = 'pending'").await, 0, "counting changes nothing");

    let output = installation.ok(&[&args[..], &["--yes"]].concat());
    assert!(output.contains("2 deliveries are due now"), "{output}");
    let retried = format!(
        "state = 'pending' and attempts_before = 3 and next_attempt_at <= now() and webhook_id = '{WEBHOOK}'"
    );
    assert_eq!(count(&installation, &retried).await, 2);
    assert_eq!(count(&installation, "state = 'pending'").await, 2, "neither pings nor other webhooks");
    assert!(installation.ok(&[&args[..], &["--yes"]].concat()).starts_with("0 deliveries"));

    let output =
        installation.ok(&["deliveries", "retry", "--webhook", OTHERS_WEBHOOK, "--since", "2d", "--yes"]);
    assert!(output.contains("2 deliveries are due now"), "{output}");
    let canceled = format!("state = 'canceled' and webhook_id = '{OTHERS_WEBHOOK}'");
    assert_eq!(count(&installation, &canceled).await, 1, "its owner dropped it");
    installation.execute(&format!("update webhooks set is_active = true; update accounts set suspended_at = now() where id = '{ACCOUNT}'")).await;
    let output = installation.ok(&["deliveries", "retry", "--all", "--canceled", "--since", "2d", "--yes"]);
    assert!(
        output.starts_with("1 deliveries") && output.contains("4 more are of disabled webhooks or suspended"),
        "{output}"
    );

    let actions = installation.ok(&["admin", "actions"]);
    assert_eq!(actions.matches("deliveries retry").count(), 3, "{actions}");
    assert!(
        !actions.contains(WEBHOOK) && actions.contains(ACCOUNT) && actions.contains(OTHERS_WEBHOOK),
        "{actions}"
    );
    assert!(installation.error(&["deliveries", "retry"]).contains("--webhook ID, --account ID, or --all"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outbox_shows_what_waits_and_what_cannot_be_read() {
    let installation = Installation::new().await;
    assert!(installation.ok(&["outbox"]).contains("The outbox is empty"));
    installation
        .execute(
            r#"insert into outbox (kind, body, due_at, created_at) values
               ('job', '{"job": "purge_events_v1"}', now(), now() - interval '7 minutes'),
               ('signal', '{"signal": "changed", "change": "asset", "asset_id": "00000000-0000-0000-0000-000000000001"}', now(), now()),
               ('signal', '{"signal": "changed", "change": "of_tomorrow"}', now() + interval '1 hour', now()),
               ('job', '{"job": "of_tomorrow_v1"}', now() + interval '1 hour', now())"#,
        )
        .await;
    let output = installation.ok(&["outbox"]);
    let line = |name: &str| {
        output.lines().find(|line| line.contains(name)).unwrap().split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(line("purge_events_v1"), ["job", "purge_events_v1", "1", "1", "0", "7", "min", "ago"]);
    assert_eq!(&line("asset")[..5], ["signal", "asset", "1", "1", "0"]);
    assert_eq!(&line("of_tomorrow_v1")[..5], ["job", "of_tomorrow_v1", "1", "0", "1"]);
    assert_eq!(output.matches("\nunreadable: ").count(), 2, "{output}");
    assert!(output.contains("unknown variant `of_tomorrow_v1`"), "{output}");

    assert!(installation.ok(&["outbox", "retry"]).starts_with("2 postponed rows are due now"));
    assert!(installation.ok(&["outbox", "retry"]).starts_with("0 postponed rows"));
    let due: i64 = sqlx::query_scalar("select count(*) from outbox where due_at <= now()")
        .fetch_one(&*installation.database.db)
        .await
        .unwrap();
    assert_eq!(due, 4);
    assert!(installation.ok(&["admin", "actions"]).contains(r#"{"rows":2}"#));
}

/// Writes a sealed segment with these lines.
fn write_segment(folder: &TestFolder, id: Uuid, lines: &[String]) {
    fs::create_dir_all(folder.path()).unwrap();
    let records: String =
        lines.iter().map(|json| format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()))).collect();
    fs::write(folder.path().join(format!("{id}.sealed")), records).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn segments_of_a_retired_collector_are_listed_and_shipped_once() {
    let mut installation = Installation::new().await;
    let folder = sandbox::test::folder();
    installation.set.push(format!("segments.folder={}", folder.path().display()));
    for command in ["list", "ship"] {
        let error = installation.error(&["segments", command]);
        assert!(error.contains(folder.path().to_str().unwrap()), "{error}");
        assert!(
            error.contains("`segments.folder`") && error.contains("mount the collector's volume"),
            "{error}"
        );
    }
    fs::create_dir_all(folder.path()).unwrap();
    let listed = installation.ok(&["segments", "list"]);
    assert_eq!(listed, format!("{}: 0 segments\n", folder.path().display()));
    let site = Uuid::from_u128(0xc1);
    installation
        .execute(&format!(
            "insert into accounts (id, claimed_at, created_at) values ('{ACCOUNT}', now(), now());
             insert into analytics_sites (id, account_id, site_token, name, created_at)
             values ('{site}', '{ACCOUNT}', 'token', 'Site', now())"
        ))
        .await;
    let events: Vec<Event> = (1..=3)
        .map(|number| Event {
            id: Uuid::from_u128(number),
            account_id: ACCOUNT.parse().unwrap(),
            site_id: site,
            received_at: "2026-11-20T12:00:00Z".parse().unwrap(),
            name: "page_view".to_owned(),
            visitor: 7,
            ..Event::default()
        })
        .collect();
    let lines: Vec<String> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    let id: Uuid = "01990a2b-0000-7000-8000-000000000001".parse().unwrap();
    write_segment(&folder, id, &lines);
    let listed = installation.ok(&["segments", "list"]);
    assert!(listed.contains(&format!("{id}  sealed")) && listed.contains("1 segments,"), "{listed}");

    let shipped = installation.ok(&["segments", "ship"]);
    assert!(shipped.contains("1 of 1 segments are in ClickHouse"), "{shipped}");
    let warehouse = installation.clickhouse.connect();
    assert_eq!(warehouse.list_stored_ids(&events).await.unwrap().len(), 3);
    assert_eq!(folder.files(), ["lock"]);
    assert!(installation.ok(&["segments", "ship"]).contains(": 0 segments"));
    let actions = installation.ok(&["admin", "actions"]);
    assert!(
        actions.contains(r#""left":0,"state":"ended""#) && actions.contains(r#""state":"begun""#),
        "{actions}"
    );

    let other: Uuid = "01990a2b-0000-7000-8000-000000000002".parse().unwrap();
    write_segment(&folder, other, &["{\"of\": \"tomorrow\"}".to_owned()]);
    let refused = installation.run(&["segments", "ship"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stdout.contains(&format!("{other}  refused")), "{refused:?}");
    assert!(refused.stderr.contains("not an event this version knows"), "the log says why: {refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_in_use_and_an_unreachable_clickhouse_are_named() {
    let mut installation = Installation::new().await;
    let folder = sandbox::test::folder();
    installation.set.push(format!("segments.folder={}", folder.path().display()));
    write_segment(&folder, Uuid::from_u128(1), &["{}".to_owned()]);
    let lock = fs::File::create(folder.path().join("lock")).unwrap();
    lock.try_lock().unwrap();
    assert!(installation.error(&["segments", "ship"]).contains("is locked by another collector"));
    let actions = installation.ok(&["admin", "actions"]);
    assert!(
        actions.lines().count() == 2 && actions.contains("is locked by another"),
        "also errors: {actions}"
    );
    drop(lock);
    installation.set.push("warehouse.url=http://127.0.0.1:1".to_owned());
    assert!(installation.error(&["segments", "ship"]).contains("connecting to ClickHouse"));
    assert_eq!(folder.files().len(), 2, "the segment is still there: {:?}", folder.files());
}
