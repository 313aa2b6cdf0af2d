//! What a worker writes only while it holds the claim of its run, and what the next one finds.

use automation::execution::{Effect, EffectError, PageEdit};
use serde_json::{Value, json};
use store::automations::list_journal;

use super::fixture::{Fixture, call, call_at, create_entry, object};
use crate::automations::effects::{is_transactional, perform};

/// What effects write, as text.
const STATE: &str = "select jsonb_build_array(
    (select jsonb_agg(e) from page_entries e), (select jsonb_agg(p) from pages p), (select jsonb_agg(s) from submissions s),
    (select jsonb_agg(d) from deliveries d), (select jsonb_agg(s) from automation_steps s),
    (select jsonb_agg(r.response) from automation_runs r), (select jsonb_agg(o) from outbox o),
    (select jsonb_agg(u) from usage u))";

/// One effect of each type that would succeed.
async fn effects(fixture: &Fixture) -> Vec<Effect> {
    let account = fixture.account;
    let page_id = fixture.page(account, "list").await;
    let entry = fixture.perform(create_entry(page_id, json!({"name": "x"}))).await.unwrap();
    let form_id = fixture.form(account, |_| {}).await;
    let edit = PageEdit {
        slug: Some("new".to_owned()),
        upsert: true,
        title: Some("T".to_owned()),
        ..PageEdit::default()
    };
    vec![
        create_entry(page_id, json!({"name": "y"})),
        Effect::DeleteEntry { page_id, entry_id: entry["id"].as_str().unwrap().parse().unwrap() },
        Effect::UpdatePage(Box::new(PageEdit { html: Some("x".to_owned()), ..edit })),
        Effect::CreateSubmission { form_id, payload: object(json!({"email": "a@b.co"})) },
        Effect::SendWebhook { webhook_id: fixture.webhook(account).await, payload: object(json!({"a": 1})) },
        Effect::Respond { status: 200, headers: object(json!({})), body: Some(json!("x")) },
    ]
}

#[tokio::test]
async fn a_lost_claim_writes_nothing() {
    let fixture = Fixture::new().await;
    let effects = effects(&fixture).await;
    for (taken_by, statement) in [
        (
            "another worker",
            "update automation_runs set lease_id = gen_random_uuid() where status = 'running'",
        ),
        ("a cancellation", "update automation_runs set status = 'cancelled', lease_id = null, due_at = null"),
        ("a suspension", "update accounts set suspended_at = now()"),
        ("a deletion", "delete from automations"),
    ] {
        fixture.change("update accounts set suspended_at = null").await;
        let context = fixture.run().await;
        fixture.change(statement).await;
        fixture.signals().await;
        let before = fixture.json(STATE).await;
        for effect in &effects {
            let result = perform(&context, call(effect.clone())).await;
            assert_eq!(result, Err(EffectError::Lost), "{taken_by}: {effect:?}");
        }
        assert_eq!(fixture.json(STATE).await, before, "{taken_by}");
        assert_eq!(fixture.signals().await, [], "{taken_by}");
    }
}

#[tokio::test]
async fn a_run_that_is_cancelled_during_an_effect_keeps_nothing_of_it() {
    let fixture = Fixture::new().await;
    let form = fixture.form(fixture.account, |_| {}).await;
    let context = fixture.run().await;
    // The effect waits for the insertion of another transaction while the run is cancelled.
    let mut blocking = store::begin(&fixture.database.db).await.unwrap();
    sqlx::query("lock table submissions in exclusive mode").execute(&mut *blocking).await.unwrap();
    let effect = Effect::CreateSubmission { form_id: form, payload: object(json!({"email": "a@b.co"})) };
    let (result, ()) = tokio::join!(perform(&context, call(effect)), async {
        // The tests share a server.
        let waiting = "select count(*) from pg_stat_activity
                       where datname = current_database() and wait_event_type = 'Lock'";
        sandbox::test::until(async || fixture.number(waiting).await > 0).await;
        fixture
            .change("update automation_runs set status = 'cancelled', lease_id = null, due_at = null")
            .await;
        store::rollback(blocking).await.unwrap();
    });
    assert_eq!(result, Err(EffectError::Lost));
    assert_eq!(fixture.number("select count(*) from submissions").await, 0);
    assert_eq!(fixture.number("select count(*) from automation_steps").await, 0);
}

#[tokio::test]
async fn another_accounts_claim_is_none() {
    let fixture = Fixture::new().await;
    let other = fixture.other_account().await;
    let mut context = fixture.run().await;
    context.account_id = other.id;
    let page = fixture.page(other, "list").await;
    let result = perform(&context, call(create_entry(page, json!({"name": "x"})))).await;
    assert_eq!(result, Err(EffectError::Lost));
    let respond = Effect::Respond { status: 200, headers: object(json!({})), body: None };
    assert_eq!(perform(&context, call(respond)).await, Err(EffectError::Lost));
}

#[tokio::test]
async fn after_a_kill_behind_the_commit_the_journal_has_each_effect() {
    let fixture = Fixture::new().await;
    for effect in effects(&fixture).await {
        assert!(is_transactional(&effect));
        let killed = fixture.run().await;
        let output = perform(&killed, call(effect.clone())).await.unwrap();
        // The worker is killed before its walk goes on: the lease expires, and another one claims the run.
        fixture.change("update automation_runs set due_at = now() where status = 'running'").await;
        let claim = fixture.claim(killed.claim.run_id).await;
        let mut conn = store::acquire(&fixture.database.db).await.unwrap();
        let journal = list_journal(&mut conn, &[claim.run_id]).await.unwrap();
        let recorded: Vec<_> =
            journal.iter().map(|row| (row.path.as_str(), row.status.as_str(), row.output.clone())).collect();
        assert_eq!(recorded, [("step", "success", Ok(output.clone()))], "{effect:?}");
        let before = fixture.json(STATE).await;
        assert_eq!(
            perform(&killed, call(effect)).await,
            Err(EffectError::Lost),
            "the killed one is not dead"
        );
        assert_eq!(fixture.json(STATE).await, before);
    }
}

#[tokio::test]
async fn secrets_are_masked_in_the_log_and_whole_in_the_journal() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    let mut context = fixture.run().await;
    context.masking = automation::masking::Masking::new(["s3cret-token"]);
    perform(&context, call_at("add", create_entry(page, json!({"name": "is s3cret-token"})))).await.unwrap();
    let step = fixture.json("select jsonb_build_array(input, output) from automation_steps").await;
    assert!(!step.to_string().contains("s3cret") && step.to_string().contains("is ***"), "{step}");
    let data: Value = fixture.json("select data from page_entries").await;
    assert_eq!(data, json!({"name": "is s3cret-token"}));
    assert_eq!(
        fixture.number("select count(*) from automation_steps where sealed_output is not null").await,
        1
    );
}
