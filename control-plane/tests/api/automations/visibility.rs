//! What replays and statistics tell to keys that may not see the run that they come from.

use http::Method;
use serde_json::{Value, json};
use store::automations::RunResult;

use super::fixture::{Owner, http, step, stop, with};
use super::permissions::entry;

/// An entry on a page, then the end.
fn steps(page: &str) -> Value {
    let mut steps = entry(page);
    steps.as_array_mut().unwrap().push(stop());
    steps
}

impl Owner {
    /// Runs an automation that writes to a page, and returns the path of the run.
    async fn run_of(&self, path: &str, url: &str) -> String {
        let run_id = self.trigger(url, &json!({"a": 1})).await.run_id();
        let run = self.claim_one().await;
        let output = json!({"entryId": "x", "data": {"a": "secret of the other page"}});
        self.store_steps(run.claim, vec![step("entry", "create_entry", output)]).await;
        self.succeed(run.claim).await;
        format!("{path}/runs/{run_id}")
    }

    async fn fail(&self, url: &str, message: &str) {
        self.trigger(url, &json!({})).await;
        let run = self.claim_one().await;
        let (path, message) = ("entry".to_owned(), message.to_owned());
        self.end(run.claim, RunResult::Error { path, message }).await;
    }

    async fn status(&self, key: &str, method: Method, path: &str, body: Value) -> u16 {
        self.api.send(method, path, Some(key), &body).await.0.as_u16()
    }
}

#[tokio::test]
async fn a_replay_does_not_show_outputs_of_a_version_to_keys_that_can_not_see_its_runs() {
    let owner = Owner::new(&[]).await;
    let (page, other) = (owner.page("one").await, owner.page("other").await);
    let (path, created) = owner.automation(with(http(), "steps", steps(&other))).await;
    let run = owner.run_of(&path, created["triggerUrl"].as_str().unwrap()).await;
    owner.ok(Method::PUT, &path, json!({"steps": steps(&page)})).await;
    let narrow = owner.key_with(json!({"resourceIds": {"pages": [page]}})).await;
    let mut replayed = vec![run];
    // Replays of replays keep the outputs as well.
    for _ in 0..2 {
        let replay = format!("{}/replay", replayed.last().unwrap());
        assert_eq!(owner.status(&narrow, Method::POST, &replay, json!({"fromStep": "end"})).await, 403);
        let new = owner.ok(Method::POST, &replay, json!({"fromStep": "end"})).await;
        let claimed = owner.claim_one().await;
        owner.succeed(claimed.claim).await;
        replayed.push(format!("{path}/runs/{}", new["runId"].as_str().unwrap()));
    }
    for run in &replayed {
        assert!(owner.get(run).await.to_string().contains("secret of the other page"));
        assert_eq!(owner.status(&narrow, Method::GET, run, Value::Null).await, 403, "{run}");
    }
    assert_eq!(owner.status(&narrow, Method::GET, &format!("{path}/logs"), Value::Null).await, 403);
    // A run of the current version alone it may see.
    let own = owner.run_of(&path, created["triggerUrl"].as_str().unwrap()).await;
    assert_eq!(owner.status(&narrow, Method::GET, &own, Value::Null).await, 200);
    let replay = format!("{own}/replay");
    assert_eq!(owner.status(&narrow, Method::POST, &replay, json!({"fromStep": "end"})).await, 200);
}

#[tokio::test]
async fn the_steps_of_a_key_do_not_get_outputs_and_triggers_beyond_its_permissions() {
    let owner = Owner::new(&["automations.test_timeout=1ms"]).await;
    let (page, other) = (owner.page("one").await, owner.page("other").await);
    let (form, own_form) = (owner.form().await, owner.form().await);
    let narrow = owner.key_with(json!({"resourceIds": {"pages": [page], "forms": [own_form]}})).await;
    let (path, created) = owner.automation(with(http(), "steps", steps(&other))).await;
    let run = owner.run_of(&path, created["triggerUrl"].as_str().unwrap()).await;
    let trigger = json!({"type": "form_submission", "formId": form});
    owner.ok(Method::PUT, &path, json!({"trigger": trigger})).await;
    let of_form = owner.ok(Method::POST, &format!("{path}/test"), json!({})).await;
    let claimed = owner.claim_one().await;
    owner.succeed(claimed.claim).await;
    let of_form = format!("{path}/runs/{}/replay", of_form["runId"].as_str().unwrap());
    // From now on the runs have the permissions of the narrow key, which could send what it gets anywhere.
    let change = json!({"trigger": {"type": "http"}, "steps": steps(&page)});
    assert_eq!(owner.status(&narrow, Method::PUT, &path, change).await, 200);
    let replay = format!("{run}/replay");
    for (path, body) in [(&replay, json!({"fromStep": "end"})), (&of_form, Value::Null)] {
        let (status, problem) = owner.call(Method::POST, path, body).await;
        assert_eq!((status.as_u16(), &problem["code"]), (403, &json!("insufficient_scope")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("the key that last saved"), "{problem}");
    }
    owner.ok(Method::POST, &replay, Value::Null).await;
}

#[tokio::test]
async fn the_last_error_is_shown_only_to_keys_that_may_see_the_run() {
    let owner = Owner::new(&[]).await;
    let (page, other) = (owner.page("one").await, owner.page("other").await);
    let (path, created) = owner.automation(with(http(), "steps", steps(&other))).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let narrow = owner.key_with(json!({"resourceIds": {"pages": [page]}})).await;
    let seen_by = async |key: &str| {
        let read = async |method: Method, path: &str, body: Value| {
            let (status, seen) = owner.api.send(method, path, Some(key), &body).await;
            assert_eq!(status.as_u16(), 200, "{seen}");
            let automation = seen.get("automations").map_or(&seen, |list| &list[0]);
            automation["statistics"]["lastError"].clone()
        };
        let errors = [
            read(Method::GET, &path, Value::Null).await,
            read(Method::GET, "/api/automations", Value::Null).await,
            read(Method::PUT, &path, json!({"name": "B"})).await,
        ];
        assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
        errors[0].clone()
    };
    assert_eq!(seen_by(&narrow).await, Value::Null);
    owner.fail(url, "no entry of the other page").await;
    assert_eq!(seen_by(&owner.key).await, "no entry of the other page");
    assert_eq!(seen_by(&narrow).await, Value::Null, "it may not see the current version");
    owner.ok(Method::PUT, &path, json!({"steps": steps(&page)})).await;
    assert_eq!(seen_by(&narrow).await, Value::Null, "it may not see the version that failed");
    owner.fail(url, "no entry of the page").await;
    assert_eq!(seen_by(&narrow).await, "no entry of the page");
    owner.ok(Method::PUT, &path, json!({"steps": steps(&other)})).await;
    assert_eq!(seen_by(&narrow).await, Value::Null, "it may not see the current version");
    assert_eq!(seen_by(&owner.key).await, "no entry of the page");
}
