//! Runs walk their steps, survive the kill of a worker, and can be cancelled at any time.

use automation::masking::MASK;
use domain::pages::{Content, Publication};
use sandbox::test::until;
use serde_json::{Value, json};
use store::pages::NewPage;
use uuid::Uuid;

use super::{minutes, pairs};
use crate::fixture::account::{Account, new_id, now};
use crate::fixture::receiver::Receiver;

impl Account {
    /// Creates a page with entries.
    pub(super) async fn entry_page(&self) -> Uuid {
        let (subdomain_id, id) = (new_id(), new_id());
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let name = format!("site-{}", &subdomain_id.simple().to_string()[20..]);
        store::subdomains::insert_subdomain(&mut conn, self.id, subdomain_id, &name, now()).await.unwrap();
        let page = NewPage {
            id,
            folder_id: None,
            subdomain_id,
            slug: "leads".to_owned(),
            content: Content {
                title: "Leads".to_owned(),
                html: "x".to_owned(),
                css: None,
                entry_template: Some("<p>{{mail}}</p>".to_owned()),
                metadata: json!({}),
            },
            publication: Publication { is_published: true, publish_at: None },
            deploy_id: None,
            created_at: now(),
        };
        assert!(store::pages::insert_page(&mut conn, self.id, &page).await.unwrap());
        id
    }
}

fn three_steps(page: Uuid) -> Value {
    json!([
        {"id": "check", "type": "condition", "branches": [{"if": "trigger.payload.n > 1", "steps": [
            {"id": "names", "type": "set", "values": {"mail": "{{ lower(trigger.payload.mail) }}"}},
            {"id": "entry", "type": "create_entry", "pageId": page,
             "data": {"mail": "{{ steps.names.mail }}"}}
        ]}], "else": []}
    ])
}

#[tokio::test]
async fn a_run_of_three_steps_ends_with_its_log_and_its_statistics() {
    let account = Account::new().await;
    let automation = account.automation(three_steps(account.entry_page().await)).await;
    let _running = account.run_automations(&[]).await;
    let id = automation.start(json!({"n": 2, "mail": "A@B.co"})).await;
    let run = automation.run_when(id, "success").await;
    assert_eq!((run.due_at, run.error, run.message), (None, None, None));
    assert!(run.finished_at >= run.started_at && run.started_at >= Some(run.created_at));
    let steps = automation.steps(id).await;
    let outline: Vec<_> = steps.iter().map(|step| (step.path.as_str(), step.status.as_str())).collect();
    assert_eq!(outline, [("check", "success"), ("names", "success"), ("entry", "success")]);
    assert_eq!(steps[1].output, json!({"mail": "a@b.co"}));
    assert_eq!(account.number("select count(*) from page_entries").await, 1);
    let statistics = automation.read().await.statistics;
    assert_eq!((statistics.runs, statistics.failures, statistics.last_error), (1, 0, None));
    assert_eq!(statistics.last_run_at, run.finished_at);
    // Without the branch.
    let id = automation.start(json!({"n": 1})).await;
    automation.run_when(id, "success").await;
    assert_eq!(automation.outline(id).await.len(), 1);
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let durations = store::automations::find_durations(&mut conn, account.id, automation.id).await.unwrap();
    assert!(durations.is_some_and(|(p50, p95)| p50 >= 0.0 && p95 >= p50), "{durations:?}");
}

#[tokio::test]
async fn a_test_run_uses_test_outputs_and_moves_no_statistics() {
    let account = Account::new().await;
    let steps = json!([
        {"id": "ask", "type": "fetch", "url": "https://a.example", "testOutput": {"body": 7}},
        {"id": "sum", "type": "set", "values": {"n": "{{ steps.ask.body + 1 }}"}},
    ]);
    let automation = account.automation(steps).await;
    let _running = account.run_automations(&[]).await;
    let mut run = automation.new_run(&Value::Null);
    (run.is_test, run.trigger_type) = (true, "test");
    let id = automation.start_run(run).await;
    automation.run_when(id, "success").await;
    assert_eq!(automation.steps(id).await[1].output, json!({"n": 8}));
    assert_eq!(automation.read().await.statistics.runs, 0);
}

#[tokio::test]
async fn a_run_continues_after_its_last_stored_step_when_its_worker_was_killed() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let steps = json!([
        {"id": "first", "type": "fetch", "url": receiver.url},
        {"id": "pause", "type": "wait", "resume": true},
        {"id": "second", "type": "fetch", "url": receiver.url},
    ]);
    let automation = account.automation(steps).await;
    let id = automation.start(Value::Null).await;
    // A worker that is killed before its first step.
    assert_eq!(account.claim_due_runs(now()).await[0].claims, 1);
    let first = account.run_automations(&[]).await;
    automation.run_when(id, "waiting").await;
    first.stop().await;
    // One that is killed when the wait is over.
    assert!(account.resume(id, 0).await);
    let killed = account.claim_due_runs(now()).await;
    assert_eq!((killed[0].has_begun, killed[0].claims), (true, 1));
    let _second = account.run_automations(&[]).await;
    automation.run_when(id, "success").await;
    assert_eq!(receiver.count(), 2, "the first request is not sent again");
    assert_eq!(
        automation.outline(id).await,
        pairs(&[("first", "success"), ("pause", "success"), ("second", "success")])
    );
}

#[tokio::test]
async fn a_run_that_stops_five_workers_is_not_walked_again() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let automation = account.automation(json!([{"id": "ask", "type": "fetch", "url": receiver.url}])).await;
    let id = automation.start(Value::Null).await;
    for claims in 1..=5 {
        assert_eq!(account.claim_due_runs(now()).await[0].claims, claims);
    }
    let _running = account.run_automations(&[]).await;
    let run = automation.run_when(id, "error").await;
    assert!(run.error.unwrap().starts_with("stopped 5 times"));
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn a_run_is_cancelled_while_it_waits_and_while_it_runs() {
    let account = Account::new().await;
    let receiver = Receiver::stalled().await;
    let waiting = account.automation(json!([{"id": "pause", "type": "wait", "for": "1h"}])).await;
    let steps = json!([
        {"id": "ask", "type": "fetch", "url": receiver.url, "timeoutMs": 60_000},
        {"id": "again", "type": "fetch", "url": receiver.url},
    ]);
    let asking = account.automation(steps).await;
    let running = account.run_automations(&[]).await;
    let (first, second) = (waiting.start(Value::Null).await, asking.start(Value::Null).await);
    waiting.run_when(first, "waiting").await;
    let logged = waiting.outline(first).await;
    assert!(waiting.cancel(first).await && !waiting.cancel(first).await);
    until(async || receiver.count() == 1).await;
    assert!(asking.cancel(second).await);
    receiver.release();
    // A run that starts now ends, and all walks have ended when the job-runner has.
    let third = asking.start(Value::Null).await;
    asking.run_when(third, "success").await;
    running.stop().await;
    assert_eq!(receiver.count(), 3, "the cancelled run sent no second request");
    for (automation, id) in [(&waiting, first), (&asking, second)] {
        let run = automation.run(id).await;
        assert_eq!((run.status.as_str(), run.due_at, run.error), ("cancelled", None, None));
        assert!(!account.resume(id, 0).await);
    }
    assert_eq!(waiting.outline(first).await, logged);
    assert!(asking.steps(second).await.is_empty(), "nor did it store the first one");
    assert_eq!((waiting.read().await.statistics.runs, asking.read().await.statistics.runs), (0, 1));
}

#[tokio::test]
async fn at_shutdown_a_walk_ends_and_runs_that_have_not_begun_are_released() {
    let account = Account::new().await;
    let receiver = Receiver::stalled().await;
    let automation = account.automation(json!([{"id": "ask", "type": "fetch", "url": receiver.url}])).await;
    let running = account.run_automations(&[]).await;
    let id = automation.start(Value::Null).await;
    until(async || receiver.count() == 1).await;
    running.request_stop();
    receiver.release();
    running.stop().await;
    assert_eq!(automation.run(id).await.status.as_str(), "success");
    assert_eq!(account.claim_due_runs(now() + minutes(1)).await.len(), 0);
}

#[tokio::test]
async fn values_of_variables_are_masked_in_the_log_and_read_by_later_walks() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let (a, b) = ("{{ env.TOKEN }}", "{{ steps.echo.token }}");
    let definition = super::with_steps(json!([
        {"id": "echo", "type": "set", "values": {"token": a}},
        {"id": "first", "type": "fetch", "method": "POST", "url": receiver.url, "body": {"token": b}},
        {"id": "pause", "type": "wait", "for": "1s"},
        {"id": "second", "type": "fetch", "method": "POST", "url": receiver.url, "body": {"token": b}},
        {"id": "end", "type": "stop", "status": "error", "message": "bad token {{ env.TOKEN }}"},
    ]));
    let env = json!({"TOKEN": "s3cret-token"});
    let automation = account.automation_with(&definition, None, &env).await;
    let _running = account.run_automations(&[]).await;
    let id = automation.start(Value::Null).await;
    let run = automation.run_when(id, "error").await;
    assert_eq!(run.error, Some(format!("bad token {MASK}")));
    let sent: Vec<_> = receiver.received().iter().map(|one| one.json()["token"].clone()).collect();
    assert_eq!(sent, ["s3cret-token", "s3cret-token"]);
    let log = format!("{:?}", automation.steps(id).await);
    assert!(log.contains(MASK) && !log.contains("s3cret"), "{log}");
    assert_eq!(
        account.number("select count(*) from automation_steps where sealed_output is not null").await,
        0
    );
}

#[tokio::test]
async fn loops_and_transforms_run_and_an_unreadable_definition_is_an_error() {
    let account = Account::new().await;
    let automation = account
        .automation(json!([
            {"id": "list", "type": "transform", "input": "{{ trigger.payload }}", "map": "{{ item * 2 }}"},
            {"id": "each", "type": "for_each", "items": "{{ steps.list }}", "as": "n", "concurrency": 3, "steps": [
                {"id": "one", "type": "set", "values": {"n": "{{ n + 1 }}"}}]},
        ]))
        .await;
    let _running = account.run_automations(&[]).await;
    let id = automation.start(json!([1, 2, 3])).await;
    let run = automation.run_when(id, "success").await;
    assert_eq!(run.error, None);
    assert_eq!(automation.steps(id).await.len(), 5);
    account.change("update automation_definitions set definition = '{\"steps\": []}', hash = hash").await;
    let other = account.automation(json!([{"id": "a", "type": "set", "values": {"n": 1}}])).await;
    account.change("update automation_definitions set definition = '{\"steps\": []}'").await;
    let id = other.start(Value::Null).await;
    let run = other.run_when(id, "error").await;
    assert!(run.error.unwrap().contains("the definition can't be read any more"));
}

#[tokio::test]
async fn a_run_of_a_suspended_account_ends_with_an_error() {
    let account = Account::new().await;
    let automation = account.automation(json!([{"id": "a", "type": "set", "values": {"n": 1}}])).await;
    let id = automation.start(Value::Null).await;
    account.change("update accounts set suspended_at = now()").await;
    let _running = account.run_automations(&[]).await;
    assert_eq!(automation.run_when(id, "error").await.error.as_deref(), Some("the account is suspended"));
}
