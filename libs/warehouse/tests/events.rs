//! Inserts, counts and deletions on a real ClickHouse engine.

use chrono::{DateTime, TimeDelta, Utc};
use contract::events::Event;
use serde_json::{Value, json};
use uuid::Uuid;
use warehouse::Config;

const SITE: Uuid = Uuid::from_u128(7);
const OTHER_SITE: Uuid = Uuid::from_u128(8);

fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp_nanos(1_795_003_200_000_000_000)
}

fn event(site: Uuid, visitor: u64, received_at: DateTime<Utc>) -> Event {
    Event {
        id: Uuid::from_u128(u128::from(visitor) << 64 | 1),
        account_id: Uuid::from_u128(1),
        site_id: site,
        received_at,
        name: "page_view".into(),
        host: "shop.example".into(),
        path: "/".into(),
        visitor,
        ..Event::default()
    }
}

#[tokio::test]
async fn a_batch_that_is_sent_again_is_counted_once() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    // Larger than one chunk of the request, and in two partitions.
    let batch: Vec<Event> = (0..30_000)
        .map(|i| event(SITE, i, noon() - TimeDelta::days(40 * i64::try_from(i % 2).unwrap())))
        .collect();
    for _ in 0..3 {
        warehouse.insert_events("batch-a", &batch).await.unwrap();
    }
    assert_eq!(warehouse.count_events_by_site(&[SITE]).await.unwrap()[&SITE], 30_000);

    warehouse.insert_events("batch-b", &batch[..10]).await.unwrap();
    assert_eq!(warehouse.count_events_by_site(&[SITE]).await.unwrap()[&SITE], 30_010);
}

#[tokio::test]
async fn all_fields_of_an_event_are_stored() {
    let clickhouse = sandbox::test::clickhouse().await;
    let full = Event {
        title: "It's a \"shop\"\n\\ ü".into(),
        referrer_host: "news.example".into(),
        utm_source: "s".into(),
        utm_medium: "m".into(),
        utm_campaign: "c".into(),
        screen: "laptop".into(),
        props: vec![("plan".into(), "pro".into())],
        engagement_ms: 1_500,
        scroll_depth: Some(75),
        previous: 5,
        source: "News".into(),
        channel: "Referral".into(),
        country: "NP".into(),
        region: "Bagmati".into(),
        city: "Kathmandu".into(),
        device: "tablet".into(),
        browser: "Firefox".into(),
        os: "Android".into(),
        ..event(SITE, u64::MAX, noon())
    };
    let empty = event(OTHER_SITE, 0, noon());
    clickhouse.connect().insert_events("batch", &[full, empty]).await.unwrap();

    let client = clickhouse::Client::default()
        .with_url(&clickhouse.url)
        .with_user(&clickhouse.user)
        .with_password(&clickhouse.password)
        .with_database(&clickhouse.database);
    let query = client
        .query("SELECT * EXCEPT (id, account_id) FROM events ORDER BY site_id")
        .with_setting("output_format_json_quote_64bit_integers", "0");
    let rows = query.fetch_bytes("JSONCompactEachRow").unwrap().collect().await.unwrap();
    let rows: Vec<Value> =
        rows.split(|byte| *byte == b'\n').filter_map(|row| serde_json::from_slice(row).ok()).collect();
    let instant = "2026-11-18 12:00:00.000";
    assert_eq!(
        rows,
        [
            json!([
                SITE, instant, u64::MAX, "page_view", "shop.example", "/", "It's a \"shop\"\n\\ ü", "news.example",
                "s", "m", "c", "laptop", {"plan": "pro"}, 1500, 75,
                5, "News", "Referral", "NP", "Bagmati", "Kathmandu", "tablet", "Firefox", "Android"
            ]),
            json!([
                OTHER_SITE,
                instant,
                0,
                "page_view",
                "shop.example",
                "/",
                "",
                "",
                "",
                "",
                "",
                "",
                {},
                0,
                255,
                0,
                "",
                "",
                "",
                "",
                "",
                "",
                "",
                ""
            ]),
        ]
    );
}

#[tokio::test]
async fn deletes_the_events_of_sites_and_accounts_and_no_others() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let (account, site_of_it) = (Uuid::from_u128(2), Uuid::from_u128(9));
    // Two months, so that the events are in two partitions.
    let long_ago = noon() - TimeDelta::days(40);
    let batch = [
        event(SITE, 1, noon()),
        event(SITE, 2, long_ago),
        event(OTHER_SITE, 1, noon()),
        Event { account_id: account, ..event(site_of_it, 1, noon()) },
        Event { account_id: account, ..event(site_of_it, 2, long_ago) },
    ];
    warehouse.insert_events("batch", &batch).await.unwrap();
    let counts = async || {
        let counts = warehouse.count_events_by_site(&[SITE, OTHER_SITE, site_of_it]).await.unwrap();
        counts.into_iter().collect::<std::collections::BTreeMap<_, _>>()
    };
    warehouse.delete_events(&[], &[SITE]).await.unwrap();
    assert_eq!(counts().await, [(OTHER_SITE, 1), (site_of_it, 2)].into());
    warehouse.delete_events(&[account, Uuid::from_u128(3)], &[SITE]).await.unwrap();
    assert_eq!(counts().await, [(OTHER_SITE, 1)].into());
    warehouse.delete_events(&[], &[]).await.unwrap();
    assert_eq!(counts().await, [(OTHER_SITE, 1)].into());
}

#[tokio::test]
async fn lists_the_ids_of_a_batch_that_are_stored() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let long_ago = noon() - TimeDelta::days(40);
    let batch = [event(SITE, 1, noon()), event(SITE, 2, long_ago), event(OTHER_SITE, 3, noon())];
    assert!(warehouse.list_stored_ids(&batch).await.unwrap().is_empty());
    assert!(warehouse.list_stored_ids(&[]).await.unwrap().is_empty());
    warehouse.insert_events("half", &batch[1..]).await.unwrap();
    let stored = warehouse.list_stored_ids(&batch).await.unwrap();
    assert_eq!(stored, batch[1..].iter().map(|event| event.id).collect());
}

#[tokio::test]
async fn erases_deleted_events_from_disk() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let batch: Vec<Event> = (0..50).map(|i| event([SITE, OTHER_SITE][i % 2], i as u64, noon())).collect();
    warehouse.insert_events("batch", &batch).await.unwrap();
    warehouse.delete_events(&[], &[SITE]).await.unwrap();
    let on_disk = async || {
        let client = clickhouse::Client::default().with_url(&clickhouse.url).with_user(&clickhouse.user);
        let client = client.with_password(&clickhouse.password).with_database(&clickhouse.database);
        let count = client.query("SELECT count() FROM events").with_setting("apply_deleted_mask", "0");
        count.fetch_one::<u64>().await.unwrap()
    };
    assert_eq!((on_disk().await, warehouse.count_events_by_site(&[SITE]).await.unwrap().len()), (50, 0));
    warehouse.erase_deleted().await.unwrap();
    assert_eq!(on_disk().await, 25);
    warehouse.erase_deleted().await.unwrap();
    assert_eq!(warehouse.count_events_by_site(&[OTHER_SITE]).await.unwrap()[&OTHER_SITE], 25);
}

#[tokio::test]
async fn concurrent_services_migrate_once() {
    let clickhouse = sandbox::test::clickhouse().await;
    let fresh = Config { database: format!("{}_fresh", clickhouse.database), ..clickhouse.config() };
    let warehouse = warehouse::connect(&fresh).unwrap();
    let together = futures::future::join_all((0..4).map(|_| warehouse.migrate())).await;
    assert!(together.iter().all(Result::is_ok), "{together:?}");
    warehouse.migrate().await.unwrap();
    warehouse.insert_events("batch", &[event(SITE, 1, noon())]).await.unwrap();
    assert_eq!(warehouse.count_events_by_site(&[SITE]).await.unwrap()[&SITE], 1);
}

#[tokio::test]
async fn errors_of_an_unavailable_warehouse_are_retryable() {
    let clickhouse = sandbox::test::clickhouse().await;
    clickhouse.connect().ping().await.unwrap();

    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unavailable =
        warehouse::connect(&Config { url: format!("http://{unused}"), ..clickhouse.config() }).unwrap();
    assert!(unavailable.ping().await.unwrap_err().retryable());
    assert!(unavailable.insert_events("batch", &[event(SITE, 1, noon())]).await.unwrap_err().retryable());

    let unmigrated = Config { database: format!("{}_none", clickhouse.database), ..clickhouse.config() };
    let unmigrated = warehouse::connect(&unmigrated).unwrap();
    unmigrated.ping().await.unwrap();
    assert!(unmigrated.insert_events("batch", &[event(SITE, 1, noon())]).await.unwrap_err().retryable());
}
