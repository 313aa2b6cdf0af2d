//! A run keeps the version of the definition that it began with, and each version is stored once.

use automation::definition::AutomationDefinition;
use sandbox::test::{trial, until};
use serde_json::{Value, json};
use store::automations::{AutomationChange, SaveOutcome, lock_automation, update_automation};

use super::{TestAutomation, pairs, with_steps};
use crate::fixture::account::{Account, new_id, now};

const VERSIONS: &str = "select count(*) from automation_definitions";

impl TestAutomation<'_> {
    /// Replaces the steps, as the API does.
    async fn replace_steps(&mut self, steps: Value) {
        let definition = AutomationDefinition::read(&with_steps(steps)).unwrap();
        let (json, hash) = (definition.canonical_json(), definition.hash());
        let change = AutomationChange {
            definition: Some((&hash, &json)),
            trigger: Some(("http", None)),
            next_fire_at: Some(None),
            ..AutomationChange::default()
        };
        let mut tx = store::begin(&self.account.database.db).await.unwrap();
        assert!(lock_automation(&mut tx, self.account_id, self.id, None).await.unwrap());
        let saved = update_automation(&mut tx, self.account_id, self.id, &change, now()).await.unwrap();
        assert_eq!(saved, SaveOutcome::Stored);
        store::commit(tx).await.unwrap();
        self.definition = definition;
    }
}

#[tokio::test]
async fn a_waiting_run_goes_on_in_its_own_version_and_the_next_one_begins_in_the_new_one() {
    let account = Account::new().await;
    let mut automation = account
        .automation(json!([
            {"id": "before", "type": "set", "values": {"text": "old"}},
            {"id": "pause", "type": "wait", "resume": true},
            {"id": "after", "type": "set", "values": {"text": "{{ steps.before.text }}, then old"}},
        ]))
        .await;
    let first = account.run_automations(&[]).await;
    let old = automation.start(Value::Null).await;
    automation.run_when(old, "waiting").await;
    automation
        .replace_steps(json!([
            {"id": "before", "type": "set", "values": {"text": "new"}},
            {"id": "after", "type": "set", "values": {"text": "{{ steps.before.text }}, then new"}},
            {"id": "more", "type": "set", "values": {"text": "only new"}},
        ]))
        .await;
    let new = automation.start(Value::Null).await;
    automation.run_when(new, "success").await;
    // Another process has no version in memory, and the retention leaves those of unfinished runs.
    first.stop().await;
    account
        .change(
            "update automation_definitions set created_at = now() - interval '1 year';
             insert into automation_definitions (account_id, hash, definition, created_at)
             select account_id, '\\x01', definition, created_at from automation_definitions limit 1",
        )
        .await;
    let _second = account.run_automations(&["automations.cleanup_interval=20ms"]).await;
    until(async || account.number(VERSIONS).await == 2).await;
    assert!(account.resume(old, 0).await);
    automation.run_when(old, "success").await;
    let expected = pairs(&[("before", "success"), ("pause", "success"), ("after", "success")]);
    assert_eq!(automation.outline(old).await, expected);
    assert_eq!(automation.steps(old).await[2].output, json!({"text": "old, then old"}));
    let expected = pairs(&[("before", "success"), ("after", "success"), ("more", "success")]);
    assert_eq!(automation.outline(new).await, expected);
    assert_eq!(automation.steps(new).await[1].output, json!({"text": "new, then new"}));
    // Of the old version, no run is left that could go on.
    until(async || account.number(VERSIONS).await == 1).await;
    let next = automation.start(Value::Null).await;
    automation.run_when(next, "success").await;
}

#[tokio::test]
async fn the_same_definition_of_two_automations_of_an_account_is_stored_once() {
    let account = Account::new().await;
    let steps = || json!([{"id": "a", "type": "set", "values": {"n": 1}}]);
    let (one, mut two) = (account.automation(steps()).await, account.automation(steps()).await);
    assert_eq!(account.number(VERSIONS).await, 1);
    two.replace_steps(json!([{"id": "a", "type": "set", "values": {"n": 2}}])).await;
    assert_eq!(account.number(VERSIONS).await, 2, "the other automation keeps its own");
    two.replace_steps(steps()).await;
    assert_eq!(account.number(VERSIONS).await, 2);
    let other = new_id();
    trial(&account.database, other, now()).await;
    let three = account.automation_of(other, &with_steps(steps()), None, &json!({})).await;
    assert_eq!(account.number(VERSIONS).await, 3, "accounts share nothing");
    let _running = account.run_automations(&[]).await;
    for automation in [&one, &two, &three] {
        let id = automation.start(Value::Null).await;
        automation.run_when(id, "success").await;
        assert_eq!(automation.steps(id).await[0].output, json!({"n": 1}));
    }
}
