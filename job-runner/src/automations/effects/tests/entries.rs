//! `create_entry` and `delete_entry`.

use automation::execution::{Effect, EffectError};
use contract::{Change, Signal};
use futures::future::join_all;
use serde_json::json;

use super::fixture::{Fixture, call, call_at, create_entry, failure};
use crate::automations::effects::perform;

#[tokio::test]
async fn an_entry_is_stored_with_the_record_of_its_step_and_the_change_of_its_page() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    let context = fixture.run().await;
    let output = perform(&context, call(create_entry(page, json!({"name": "Ada", "n": 1})))).await.unwrap();
    assert_eq!((&output["pageId"], &output["data"]), (&json!(page), &json!({"name": "Ada", "n": 1})));
    let entries =
        fixture.json("select jsonb_agg(jsonb_build_object('id', id, 'data', data)) from page_entries").await;
    assert_eq!(entries, json!([{"id": output["id"], "data": {"name": "Ada", "n": 1}}]));
    assert_eq!(fixture.number("select entry_count::bigint from pages").await, 1);
    let step =
        fixture.json("select jsonb_build_array(path, status, type, output) from automation_steps").await;
    assert_eq!(step, json!(["step", "success", "create_entry", output]));
    let change = Change::Page { subdomain_id: fixture.account.site, slug: "list".to_owned(), path: None };
    assert_eq!(fixture.signals().await, [Signal::Changed(change), Signal::OutboxFilled]);
    assert_eq!(fixture.number("select count(*) from outbox where kind = 'signal'").await, 1);
}

#[tokio::test]
async fn entries_of_many_runs_are_all_stored_and_counted() {
    let fixture = Fixture::new().await;
    let pages = [fixture.page(fixture.account, "p1").await, fixture.page(fixture.account, "p2").await];
    let mut runs = Vec::new();
    for _ in 0..100 {
        runs.push(fixture.run().await);
    }
    let creating = runs
        .iter()
        .enumerate()
        .map(|(at, run)| perform(run, call(create_entry(pages[at % 2], json!({"name": at.to_string()})))));
    for result in join_all(creating).await {
        result.unwrap();
    }
    assert_eq!(fixture.number("select count(*) from page_entries").await, 100);
    assert_eq!(fixture.number("select count(*) from pages where entry_count = 50").await, 2);
    assert_eq!(fixture.number("select count(*) from automation_steps").await, 100);
    let transactions = fixture.number("select count(distinct xmin::text) from page_entries").await;
    assert!(transactions < 50, "{transactions} transactions");
}

#[tokio::test]
async fn concurrent_entries_of_one_run_are_stored_each_with_its_record() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    let run = fixture.run().await;
    let creating = (0..5).map(|at| {
        perform(&run, call_at(&format!("each[{at}].add"), create_entry(page, json!({"name": "x"}))))
    });
    for result in join_all(creating).await {
        result.unwrap();
    }
    assert_eq!(fixture.number("select count(*) from automation_steps").await, 5);
    assert_eq!(fixture.number("select count(*) from page_entries").await, 5);
}

#[tokio::test]
async fn concurrent_entries_do_not_exceed_the_maximum_and_a_refused_one_harms_no_other() {
    let fixture = Fixture::new().await;
    let (full, bare) =
        (fixture.page(fixture.account, "full").await, fixture.page(fixture.account, "bare").await);
    fixture.change("update pages set entry_count = 497 where slug = 'full'").await;
    fixture.change("update pages set entry_template = null where slug = 'bare'").await;
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(fixture.run().await);
    }
    let creating = runs.iter().enumerate().map(|(at, run)| {
        let page = if at % 2 == 0 { full } else { bare };
        perform(run, call(create_entry(page, json!({"name": "x"}))))
    });
    let results = join_all(creating).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 3);
    let messages: Vec<_> =
        results.into_iter().filter(Result::is_err).map(|result| failure(result).message).collect();
    assert_eq!(messages.iter().filter(|message| message.contains("maximum of 500")).count(), 7);
    assert_eq!(messages.iter().filter(|message| message.contains("entryTemplate")).count(), 10);
    assert_eq!(fixture.number("select entry_count::bigint from pages where slug = 'full'").await, 500);
    assert_eq!(fixture.number("select count(*) from automation_steps").await, 3);
}

#[tokio::test]
async fn data_that_a_page_can_not_show_is_refused() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    for (data, expected) in [
        (json!({"a": {"b": 1}}), "data.a must be a text"),
        (json!({"a": "x".repeat(17 << 10)}), "at most 16 KB"),
        (json!({"a": "x\0"}), "NUL"),
        (json!({"a\0": 1}), "NUL"),
    ] {
        let failure = fixture.failure(create_entry(page, data)).await;
        assert!(failure.message.contains(expected) && !failure.is_transient, "{failure:?}");
    }
    assert_eq!(fixture.number("select count(*) from page_entries").await, 0);
    assert_eq!(fixture.number("select count(*) from automation_steps").await, 0);
}

#[tokio::test]
async fn an_entry_of_a_locked_page_waits_and_delays_no_other() {
    let fixture = Fixture::new().await;
    let (locked, free) =
        (fixture.page(fixture.account, "locked").await, fixture.page(fixture.account, "free").await);
    let mut edit = store::begin(&fixture.database.db).await.unwrap();
    store::pages::lock_page(&mut edit, fixture.account.id, locked).await.unwrap();
    let (run, other) = (fixture.run().await, fixture.run().await);
    let mut waiting = std::pin::pin!(perform(&run, call(create_entry(locked, json!({"name": "x"})))));
    let stored = perform(&other, call(create_entry(free, json!({"name": "y"}))));
    tokio::select! {
        result = &mut waiting => panic!("not stored yet: {result:?}"),
        result = stored => { result.unwrap(); }
    }
    store::commit(edit).await.unwrap();
    waiting.await.unwrap();
    // Without time left it fails, and may be retried.
    let mut edit = store::begin(&fixture.database.db).await.unwrap();
    store::pages::lock_page(&mut edit, fixture.account.id, locked).await.unwrap();
    let mut late = call_at("late", create_entry(locked, json!({"name": "z"})));
    late.timeout = std::time::Duration::from_millis(100);
    let failed = failure(perform(&run, late).await);
    assert!(failed.is_transient && failed.message.contains("being changed"), "{failed:?}");
    assert_eq!(fixture.number("select count(*) from page_entries").await, 2);
}

#[tokio::test]
async fn a_deleted_entry_is_gone_and_a_missing_one_is_no_failure() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    let entry = fixture.perform(create_entry(page, json!({"name": "x"}))).await.unwrap();
    let entry_id = entry["id"].as_str().unwrap().parse().unwrap();
    fixture.signals().await;
    let delete = || Effect::DeleteEntry { page_id: page, entry_id };
    assert_eq!(fixture.perform(delete()).await, Ok(json!({"deleted": true})));
    assert!(matches!(fixture.signals().await[0], Signal::Changed(Change::Page { .. })));
    assert_eq!(fixture.number("select entry_count::bigint from pages").await, 0);
    assert_eq!(fixture.perform(delete()).await, Ok(json!({"deleted": false})));
    assert_eq!(fixture.signals().await, []);
}

/// Makes the next `times` records of steps fail with this error of Postgres.
async fn fail_records(fixture: &Fixture, code: &str, times: u32) {
    let statement = format!(
        "create sequence if not exists failures;
         create or replace function fail() returns trigger language plpgsql as $$ begin
             if nextval('failures') <= {times} then raise exception 'as planned' using errcode = '{code}'; end if;
             return new; end $$;
         create or replace trigger fail before insert on automation_steps for each row execute function fail();
         select setval('failures', 1, false)"
    );
    fixture.change(&statement).await;
}

#[tokio::test]
async fn an_outage_of_postgres_fails_no_run() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    let run = fixture.run().await;
    // As during a failover.
    fail_records(&fixture, "25006", 1_000).await;
    let lost = perform(&run, call(create_entry(page, json!({"name": "x"})))).await;
    assert_eq!(lost, Err(EffectError::Lost));
    let lost = perform(&run, call(Effect::DeleteEntry { page_id: page, entry_id: page })).await;
    assert_eq!(lost, Err(EffectError::Lost));
    assert_eq!(fixture.number("select count(*) from page_entries").await, 0);
}

#[tokio::test]
async fn a_deadlock_is_tried_again() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    fail_records(&fixture, "40P01", 2).await;
    fixture.perform(create_entry(page, json!({"name": "x"}))).await.unwrap();
    fail_records(&fixture, "40P01", 2).await;
    let delete = Effect::DeleteEntry { page_id: page, entry_id: page };
    assert_eq!(fixture.perform(delete).await, Ok(json!({"deleted": false})));
    assert_eq!(fixture.number("select count(*) from page_entries").await, 1);
}

#[tokio::test]
async fn an_entry_that_postgres_refuses_harms_no_other() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    fixture
        .change("alter table page_entries add constraint refused check (not data @> '{\"name\": \"bad\"}')")
        .await;
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(fixture.run().await);
    }
    let creating = runs.iter().enumerate().map(|(at, run)| {
        perform(run, call(create_entry(page, json!({"name": if at == 3 { "bad" } else { "x" }}))))
    });
    let results = join_all(creating).await;
    assert!(results.iter().enumerate().all(|(at, result)| result.is_ok() == (at != 3)), "{results:?}");
    assert_eq!(fixture.number("select entry_count::bigint from pages").await, 9);
}
