//! Stored visits follow the rules, independent of the order in which events are stored.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use contract::events::{Event, Returner};
use domain::visits::{Kind, Rules, Step, visits_of};
use futures::future::join_all;
use sandbox::test::TestClickHouse;
use serde_json::Value;
use uuid::Uuid;

const SITES: [Uuid; 2] = [Uuid::from_u128(7), Uuid::from_u128(8)];

/// A visit, stored or expected: site, visitor, start, milliseconds, page views, events, bounce,
/// entry, exit, engagement, source.
type Row = (String, u64, i64, i64, u64, u64, u64, String, String, u64, String);

/// A deterministic pseudorandom generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// 2026-11-18, midnight.
fn midnight() -> DateTime<Utc> {
    DateTime::from_timestamp(1_794_960_000, 0).unwrap()
}

/// A visitor's id on the day of `at`.
fn id_on(visitor_number: u64, at: DateTime<Utc>) -> u64 {
    let day = (at - midnight()).num_days() + if at < midnight() { 9 } else { 10 };
    visitor_number * 1_000 + day.unsigned_abs()
}

fn event(number: u128, visitor_number: u64, at: DateTime<Utc>, name: &str) -> Event {
    let soon = at.time() < chrono::NaiveTime::from_hms_opt(0, 30, 0).unwrap();
    Event {
        id: Uuid::from_u128(number),
        account_id: Uuid::from_u128(1),
        site_id: SITES[usize::from(visitor_number.is_multiple_of(2))],
        received_at: at,
        name: name.into(),
        host: "shop.example".into(),
        path: format!("/{}", number % 5),
        visitor: id_on(visitor_number, at),
        previous: if soon { id_on(visitor_number, at - TimeDelta::days(1)) } else { 0 },
        engagement_ms: if name == "engagement" { 700 } else { 0 },
        source: format!("source {}", number % 7),
        ..Event::default()
    }
}

/// Two days of traffic, sorted by time.
fn traffic(visitors: u64, random: &mut Random) -> Vec<Event> {
    let mut events = Vec::new();
    let mut number = 0;
    for visitor_number in 1..=visitors {
        let mut at = midnight() - TimeDelta::hours(26)
            + TimeDelta::milliseconds(random.below(30_000_000).cast_signed());
        // The first visitor is active all day.
        let longest_pause = if visitor_number == 1 { 1_700_000 } else { 9_000_000 };
        while at < midnight() + TimeDelta::hours(26) {
            let name = ["page_view", "page_view", "sign up", "engagement"][random.below(4) as usize];
            number += 1;
            events.push(event(number, visitor_number, at, name));
            let scale = [2_000, 1_800_000, longest_pause][random.below(3) as usize].min(longest_pause);
            at += TimeDelta::milliseconds(random.below(scale).cast_signed());
        }
    }
    events.sort_by_key(|event| (event.received_at, event.id));
    events
}

/// Computes the visits of all visitors from the events.
fn expected(events: &[Event], visitors: u64) -> BTreeSet<Row> {
    let mut rows = BTreeSet::new();
    for visitor_number in 1..=visitors {
        let own = events.iter().filter(|event| event.visitor / 1_000 == visitor_number);
        let mut steps: Vec<_> = own
            .map(|event| Step {
                at: event.received_at,
                id: event.id,
                visitor: event.visitor,
                kind: Kind::of(&event.name),
                host: event.host.clone(),
                path: event.path.clone(),
                engagement_ms: event.engagement_ms,
                origin: (event.site_id, event.source.clone()),
            })
            .collect();
        for visit in visits_of(&mut steps, None, Rules::default()) {
            rows.insert((
                visit.origin.0.to_string(),
                visit.visitor,
                visit.start.timestamp_millis(),
                (visit.ended - visit.start).num_milliseconds(),
                visit.page_views.into(),
                visit.events.into(),
                visit.is_bounce().into(),
                visit.entry_path,
                visit.exit_path,
                visit.engagement_ms.into(),
                visit.origin.1,
            ));
        }
    }
    rows
}

async fn query(clickhouse: &TestClickHouse, sql: &str) -> Vec<Value> {
    let client = clickhouse::Client::default()
        .with_url(&clickhouse.url)
        .with_user(&clickhouse.user)
        .with_password(&clickhouse.password)
        .with_database(&clickhouse.database);
    let request = client.query(sql).with_setting("output_format_json_quote_64bit_integers", "0");
    let rows = request.fetch_bytes("JSONCompactEachRow").unwrap().collect().await.unwrap();
    rows.split(|byte| *byte == b'\n').filter_map(|row| serde_json::from_slice(row).ok()).collect()
}

async fn stored(clickhouse: &TestClickHouse) -> BTreeSet<Row> {
    let rows = query(
        clickhouse,
        "SELECT toString(site_id), visitor, toUnixTimestamp64Milli(start),
                toUnixTimestamp64Milli(ended) - toUnixTimestamp64Milli(start), page_views, events, bounce,
                entry_path, exit_path, engagement_ms, source
         FROM sessions FINAL",
    )
    .await;
    let all = rows.len();
    let rows: BTreeSet<Row> = rows.into_iter().map(|row| serde_json::from_value(row).unwrap()).collect();
    assert_eq!(rows.len(), all, "no visit twice");
    rows
}

#[tokio::test]
async fn visits_are_exact_with_late_events_two_collectors_and_repeated_batches() {
    const VISITORS: u64 = 12;
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let mut random = Random(20);
    let events = traffic(VISITORS, &mut random);
    assert!(events.len() > 700, "{}", events.len());
    // Two collectors get a random half of the events each and store batches concurrently: up to 40 events of one are
    // older than events that the other has stored.
    let mut shares = [Vec::new(), Vec::new()];
    for event in &events {
        shares[random.below(2) as usize].push(event.clone());
    }
    let batches: Vec<Vec<(String, Vec<Event>)>> = shares
        .iter()
        .enumerate()
        .map(|(share, events)| {
            let chunks = events.chunks(40).enumerate();
            chunks.map(|(batch, events)| (format!("{share}-{batch}"), events.to_vec())).collect()
        })
        .collect();
    for round in 0..batches[0].len().max(batches[1].len()) {
        let both = batches.iter().filter_map(|batches| batches.get(round));
        join_all(both.map(async |(token, events)| {
            warehouse.insert_events(token, events).await.unwrap();
            warehouse.recompute_visits(events, Rules::default()).await.unwrap();
        }))
        .await;
    }
    let expected = expected(&events, VISITORS);
    assert!(expected.iter().any(|row| row.3 > 80_000_000), "one visit lasts all day");
    assert_eq!(stored(&clickhouse).await, expected);

    // A collector that was killed before it deleted a segment repeats everything.
    for (token, events) in batches.iter().flat_map(|batches| batches.iter().rev().step_by(3)) {
        warehouse.insert_events(token, events).await.unwrap();
        warehouse.recompute_visits(events, Rules::default()).await.unwrap();
    }
    assert_eq!(stored(&clickhouse).await, expected);
}

#[tokio::test]
async fn a_late_event_merges_two_visits() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let at = |minutes| midnight() + TimeDelta::minutes(minutes);
    let events = [
        event(1, 3, at(-20), "page_view"),
        event(2, 3, at(20), "page_view"),
        event(3, 3, at(5), "page_view"),
        event(4, 3, at(-45), "page_view"),
    ];
    let starts = async || stored(&clickhouse).await.into_iter().map(|row| row.2).collect::<Vec<_>>();
    let millis = |minutes| at(minutes).timestamp_millis();
    let expected = [vec![millis(-20)], vec![millis(-20), millis(20)], vec![millis(-20)], vec![millis(-45)]];
    for (event, expected) in events.iter().zip(expected) {
        let batch = std::slice::from_ref(event);
        warehouse.insert_events(&event.id.to_string(), batch).await.unwrap();
        warehouse.recompute_visits(batch, Rules::default()).await.unwrap();
        assert_eq!(starts().await, expected);
    }
}

#[tokio::test]
async fn links_between_days_expire_unless_a_visit_continued_over_midnight() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let at = |minutes| midnight() + TimeDelta::minutes(minutes);
    let batch = [
        // A visit over midnight, …
        event(1, 3, at(-10), "page_view"),
        event(2, 3, at(10), "page_view"),
        // … and a visitor with separate visits.
        event(3, 5, at(-200), "page_view"),
        event(4, 5, at(-199), "page_view"),
        event(5, 5, at(-198), "page_view"),
        event(6, 5, at(10), "page_view"),
    ];
    warehouse.insert_events("batch", &batch).await.unwrap();
    warehouse.recompute_visits(&batch, Rules::default()).await.unwrap();
    let linked = async || {
        let rows =
            query(&clickhouse, "SELECT visitor FROM events WHERE previous != 0 ORDER BY visitor").await;
        rows.into_iter().map(|row| row[0].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let both = [id_on(3, at(10)), id_on(5, at(10))];
    warehouse.expire_visitor_links(at(10)).await.unwrap();
    assert_eq!(linked().await, both, "not due yet");
    for _ in 0..2 {
        warehouse.expire_visitor_links(at(11)).await.unwrap();
        assert_eq!(linked().await, both[..1]);
    }
    // Recomputing the visits afterwards returns the same.
    let visits = stored(&clickhouse).await;
    warehouse.recompute_visits(&batch, Rules::default()).await.unwrap();
    assert_eq!(stored(&clickhouse).await, visits);
    assert_eq!(visits.len(), 3);

    // An even later event counts, although fewer linked events than before determine these visits.
    let late = [Event { previous: 0, ..event(7, 5, at(5), "page_view") }];
    warehouse.insert_events("late", &late).await.unwrap();
    warehouse.recompute_visits(&late, Rules::default()).await.unwrap();
    let of_late: Vec<_> = stored(&clickhouse).await.into_iter().filter(|row| row.1 == both[1]).collect();
    assert_eq!(of_late.len(), 1);
    assert_eq!(
        (of_late[0].2, of_late[0].4),
        (at(5).timestamp_millis(), 2),
        "one visit, from the late event on"
    );
}

#[tokio::test]
async fn concurrent_link_expiries_start_one_mutation() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let batch = [event(1, 5, midnight() + TimeDelta::minutes(10), "page_view")];
    warehouse.insert_events("batch", &batch).await.unwrap();
    let system = async |command: &str| query(&clickhouse, &format!("SYSTEM {command} MERGES events")).await;
    let unfinished_mutations = async || {
        let unfinished =
            "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done";
        query(&clickhouse, unfinished).await[0][0].as_u64().unwrap()
    };
    system("STOP").await;
    let expiry = tokio::spawn({
        let warehouse = warehouse.clone();
        async move { warehouse.expire_visitor_links(midnight() + TimeDelta::days(1)).await }
    });
    sandbox::test::until(async || unfinished_mutations().await == 1).await;
    warehouse.expire_visitor_links(midnight() + TimeDelta::days(1)).await.unwrap();
    assert_eq!(unfinished_mutations().await, 1);
    system("START").await;
    expiry.await.unwrap().unwrap();
    assert_eq!(unfinished_mutations().await, 0);
}

#[tokio::test]
async fn new_events_extend_the_last_visit_and_late_ones_recompute_all() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let at = |minutes| midnight() + TimeDelta::minutes(minutes);
    let recompute = async |batch: &[Event]| {
        warehouse.insert_events(&batch[0].id.to_string(), batch).await.unwrap();
        warehouse.recompute_visits(batch, Rules::default()).await.unwrap();
        let versions =
            query(&clickhouse, "SELECT version, page_views FROM sessions FINAL ORDER BY start").await;
        Value::from(versions)
    };
    let view = |number: u128, minutes| event(number, 3, at(minutes), "page_view");
    assert_eq!(
        recompute(&[view(1, 100), view(2, 101), view(3, 150)]).await,
        serde_json::json!([[3, 2], [3, 1]])
    );
    assert_eq!(
        recompute(&[view(4, 151)]).await,
        serde_json::json!([[3, 2], [4, 2]]),
        "the first visit is unchanged"
    );
    assert_eq!(recompute(&[view(5, 200), view(6, 201)]).await, serde_json::json!([[3, 2], [4, 2], [6, 2]]));
    // A report long after a visit belongs to none; later events may change that, so all visits are recomputed.
    assert_eq!(
        recompute(&[event(7, 3, at(250), "engagement")]).await,
        serde_json::json!([[7, 2], [7, 2], [7, 2]])
    );
    assert_eq!(recompute(&[view(8, 249)]).await, serde_json::json!([[8, 2], [8, 2], [8, 2], [8, 1]]));
    assert_eq!(recompute(&[view(9, 251)]).await, serde_json::json!([[8, 2], [8, 2], [8, 2], [9, 2]]));
    assert_eq!(recompute(&[view(10, 125)]).await, serde_json::json!([[10, 5], [10, 2], [10, 2]]), "late");
    let events = recompute(&[view(11, 252), view(12, 253)]).await;
    assert_eq!(events, serde_json::json!([[10, 5], [10, 2], [12, 4]]));
    // A repeated batch does not change the visits.
    assert_eq!(recompute(&[view(11, 252), view(12, 253)]).await[2][1], 4);
}

#[tokio::test]
async fn retention_rows_are_stored_once_a_day_and_deleted_with_the_site() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let day = midnight().date_naive();
    let returner = Some(Returner { id: 5, day, epoch: day });
    let seen = |number, name: &str| Event { returner, ..event(number, 3, midnight(), name) };
    let batch = [
        seen(1, "page_view"),
        seen(2, "page_view"),
        seen(3, "sign up"),
        seen(4, "engagement"),
        event(5, 3, midnight(), "page_view"),
    ];
    warehouse.insert_events("batch", &batch).await.unwrap();
    for _ in 0..2 {
        warehouse.insert_retention(&batch).await.unwrap();
        warehouse.recompute_visits(&batch, Rules::default()).await.unwrap();
    }
    let rows = query(&clickhouse, "SELECT name, returner, day, epoch FROM returns FINAL ORDER BY name").await;
    let row = |name: &str| serde_json::json!([name, 5, "2026-11-18", "2026-11-18"]);
    assert_eq!(rows, [row("page_view"), row("sign up")]);
    assert_eq!(stored(&clickhouse).await.len(), 1);

    warehouse.delete_events(&[], &[SITES[0]]).await.unwrap();
    for table in ["events", "sessions", "returns"] {
        assert_eq!(
            query(&clickhouse, &format!("SELECT count() FROM {table}")).await,
            [serde_json::json!([0])]
        );
    }
}

#[tokio::test]
async fn a_batch_may_contain_more_visitors_than_one_statement() {
    const VISITORS: u64 = 12_000;
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let noon = midnight() + TimeDelta::hours(12);
    // Ids of 20 digits, like real ones.
    let wide = |visitor_number: u64| u64::MAX - visitor_number;
    let batch: Vec<Event> = (0..VISITORS)
        .map(|visitor_number| Event {
            visitor: wide(visitor_number),
            ..event(visitor_number.into(), visitor_number, noon, "page_view")
        })
        .collect();
    warehouse.insert_events("batch", &batch).await.unwrap();
    warehouse.recompute_visits(&batch, Rules::default()).await.unwrap();
    let sums = query(&clickhouse, "SELECT count(), sum(page_views), sum(bounce) FROM sessions FINAL").await;
    assert_eq!(sums, [serde_json::json!([VISITORS, VISITORS, VISITORS])]);
}
