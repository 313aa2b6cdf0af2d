//! `create_submission`.

use automation::execution::{Effect, EffectError};
use chrono::TimeDelta;
use contract::Signal;
use serde_json::{Value, json};
use uuid::Uuid;

use super::fixture::{Fixture, call, failure, now, object};
use crate::automations::effects::perform;

fn submit(form_id: Uuid, payload: Value) -> Effect {
    Effect::CreateSubmission { form_id, payload: object(payload) }
}

#[tokio::test]
async fn a_submission_has_all_effects_and_the_depth_of_the_run() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    let form = fixture.form(fixture.account, |form| form.auto_entry_page_id = Some(page)).await;
    let webhook = fixture.webhook(fixture.account).await;
    fixture
        .change(&format!(
            "update automations set trigger_type = 'form_submission', trigger_form_id = '{form}'"
        ))
        .await;
    let context = fixture.run_of("http", 2).await;
    let output =
        perform(&context, call(submit(form, json!({"email": "a@b.co", "n": 5, "x": 1})))).await.unwrap();
    let stored = fixture.json("select jsonb_build_array(id, payload, status) from submissions").await;
    assert_eq!(stored, json!([output["submissionId"], {"email": "a@b.co", "n": 5}, "received"]));
    let delivery = fixture.json("select jsonb_build_array(event, depth, webhook_id) from deliveries").await;
    assert_eq!(delivery, json!(["submission.created", 4, webhook]));
    assert_eq!(fixture.json("select jsonb_agg(depth) from automation_triggers").await, json!([3]));
    assert_eq!(fixture.number("select count(*) from page_entries").await, 1);
    let signals = fixture.signals().await;
    assert!(signals.contains(&Signal::DeliveriesDue { webhook_ids: vec![webhook] }), "{signals:?}");
    assert!(signals.contains(&Signal::TriggersDue), "{signals:?}");
    assert_eq!(fixture.number("select count(*) from automation_steps").await, 1);
}

#[tokio::test]
async fn invalid_answers_are_named_and_nothing_is_stored() {
    let fixture = Fixture::new().await;
    let form = fixture
        .form(fixture.account, |form| {
            let file = json!({"name": "cv", "label": "CV", "type": "file"});
            form.fields.push(serde_json::from_value(file).unwrap());
        })
        .await;
    let failed = fixture.failure(submit(form, json!({"n": "many"}))).await;
    assert!(failed.message.contains("E-mail is required") && failed.message.contains("Number"), "{failed:?}");
    assert!(!failed.is_transient);
    let output = failed.output.unwrap();
    assert_eq!(output["fieldErrors"][0]["field"], json!("email"));
    let failed = fixture.failure(submit(form, json!({"email": "a@b.co", "cv": fixture.account.id}))).await;
    assert!(failed.message.contains("can't submit files"), "{failed:?}");
    fixture.perform(submit(form, json!({"email": "a@b.co", "cv": null}))).await.unwrap();
    assert_eq!(fixture.number("select count(*) from submissions").await, 1);
}

#[tokio::test]
async fn the_forms_own_rules_hold() {
    let fixture = Fixture::new().await;
    let answers = || json!({"email": "a@b.co"});
    let closed =
        fixture.form(fixture.account, |form| form.closes_at = Some(now() - TimeDelta::hours(1))).await;
    assert!(fixture.failure(submit(closed, answers())).await.message.contains("is closed"));
    let full = fixture.form(fixture.account, |form| form.max_submissions = Some(1)).await;
    fixture.perform(submit(full, answers())).await.unwrap();
    let refused = fixture.failure(submit(full, answers())).await;
    assert!(refused.message.contains("takes no more submissions") && !refused.is_transient, "{refused:?}");
    let unique = fixture.form(fixture.account, |form| form.unique_by = Some(vec!["email".to_owned()])).await;
    fixture.perform(submit(unique, answers())).await.unwrap();
    let refused = fixture.failure(submit(unique, answers())).await;
    assert!(refused.message.contains("the same email") && !refused.is_transient, "{refused:?}");
    let limit = domain::plans::Plan::Free.limits().submissions_per_form;
    let many = fixture.form(fixture.account, |_| {}).await;
    fixture.change(&format!("update forms set submission_count = {limit} where id = '{many}'")).await;
    assert!(fixture.failure(submit(many, answers())).await.message.contains("takes no more"));
}

#[tokio::test]
async fn a_submission_waits_for_an_edit_of_the_form_and_sees_it() {
    let fixture = Fixture::new().await;
    let form = fixture.form(fixture.account, |_| {}).await;
    let mut edit = store::begin(&fixture.database.db).await.unwrap();
    store::forms::lock_form(&mut edit, fixture.account.id, form).await.unwrap();
    let run = fixture.run().await;
    let submitting = perform(&run, call(submit(form, json!({"email": "a@b.co"}))));
    let mut submitting = std::pin::pin!(submitting);
    let waited = tokio::time::timeout(std::time::Duration::from_millis(300), &mut submitting).await;
    assert!(waited.is_err(), "{waited:?}");
    store::commit(edit).await.unwrap();
    submitting.await.unwrap();
    // A step without time left fails, and may be retried.
    let mut edit = store::begin(&fixture.database.db).await.unwrap();
    store::forms::lock_form(&mut edit, fixture.account.id, form).await.unwrap();
    let run = fixture.run().await;
    let mut late = call(submit(form, json!({"email": "b@b.co"})));
    late.timeout = std::time::Duration::from_millis(100);
    let failed = failure(perform(&run, late).await);
    assert!(failed.is_transient && failed.message.contains("being edited"), "{failed:?}");
    assert_eq!(fixture.number("select count(*) from submissions").await, 1);
}

#[tokio::test]
async fn a_chain_that_calls_itself_ends() {
    let fixture = Fixture::new().await;
    let form = fixture.form(fixture.account, |_| {}).await;
    for depth in 0..6 {
        let run = fixture.run_of("http", depth).await;
        let result = perform(&run, call(submit(form, json!({"email": "a@b.co"})))).await;
        match result {
            Ok(_) => assert!(depth < 4, "{depth}"),
            Err(EffectError::Failed(failed)) => {
                assert!(depth >= 4 && failed.message.contains("calls itself"), "{depth}: {failed:?}");
            }
            Err(EffectError::Lost) => panic!("lost"),
        }
    }
}
