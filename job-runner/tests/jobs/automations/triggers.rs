//! Submissions start runs.

use domain::fields::Field;
use sandbox::test::until;
use serde_json::{Value, json};
use store::forms::Form;
use store::submissions::{NewSubmission, SubmissionOutcome, WriteContext, insert_submission};
use uuid::Uuid;

use crate::fixture::account::{Account, new_id, now};

impl Account {
    async fn lead_form(&self) -> Form {
        let fields: Vec<Field> =
            serde_json::from_value(json!([{"name": "mail", "label": "Mail", "type": "text"}])).unwrap();
        let form = Form::new(new_id(), "Leads".to_owned(), fields, now());
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::forms::insert_form(&mut conn, self.id, &form).await.unwrap();
        store::forms::find_form(&mut conn, self.id, form.id).await.unwrap().unwrap()
    }

    async fn submit_lead(&self, form: &Form, mail: &str, depth: i16) -> Uuid {
        let payload = serde_json::from_value(json!({"mail": mail})).unwrap();
        let extra = serde_json::Map::new();
        let new = NewSubmission { id: new_id(), external_id: None, payload, extra, spam_reasons: Vec::new() };
        let writer = WriteContext { now: now(), traceparent: None, depth, new_id: &new_id };
        let mut tx = store::begin(&self.database.db).await.unwrap();
        let outcome = insert_submission(&mut tx, self.id, form, &new, -1, &writer).await.unwrap();
        assert!(matches!(outcome, SubmissionOutcome::Stored(_)), "{outcome:?}");
        store::commit(tx).await.unwrap();
        new.id
    }

    async fn untriggered(&self) -> i64 {
        self.number("select count(*) from automation_triggers").await
    }
}

fn on_submission(form: &Form, concurrency: &Value) -> Value {
    let mut definition = json!({
        "trigger": {"type": "form_submission", "formId": form.id},
        "steps": [{"id": "a", "type": "set", "values": {"mail": "{{ trigger.payload.mail }}"}}],
    });
    if !concurrency.is_null() {
        definition["concurrency"] = concurrency.clone();
    }
    definition
}

#[tokio::test]
async fn a_submission_starts_one_run_of_each_automation_of_its_form() {
    let account = Account::new().await;
    let form = account.lead_form().await;
    let concurrency = json!({"limit": 1, "key": "{{ trigger.payload.mail }}"});
    let one = account.automation_with(&on_submission(&form, &concurrency), None, &json!({})).await;
    let other = account.automation_with(&on_submission(&form, &Value::Null), None, &json!({})).await;
    let (_first, _second) = (account.run_automations(&[]).await, account.run_automations(&[]).await);
    // Data is never evaluated.
    let submission = account.submit_lead(&form, "{{ env.TOKEN }}", 0).await;
    for automation in [&one, &other] {
        until(async || automation.read().await.statistics.runs == 1).await;
        let run = automation.runs().await.pop().unwrap();
        assert_eq!(run.trigger["submissionId"], json!(submission));
        assert_eq!((&run.trigger["formId"], &run.trigger["externalId"]), (&json!(form.id), &Value::Null));
        assert_eq!(automation.steps(run.id).await[0].output, json!({"mail": "{{ env.TOKEN }}"}));
    }
    let key: String =
        sqlx::query_scalar("select concurrency_key from automation_runs where concurrency_limit = 1")
            .fetch_one(&account.database.db)
            .await
            .unwrap();
    assert_eq!((key.as_str(), account.untriggered().await), ("{{ env.TOKEN }}", 0));
    assert_eq!(account.number("select automation_runs from monthly_usage").await, 2);
}

#[tokio::test]
async fn a_run_beyond_the_months_limit_leaves_a_skipped_row() {
    let account = Account::new().await;
    let form = account.lead_form().await;
    let automation = account.automation_with(&on_submission(&form, &Value::Null), None, &json!({})).await;
    let limit = super::PLAN.limits().automation_runs_per_month;
    let used = limit - 1;
    account
        .change(&format!(
            "insert into monthly_usage (account_id, month, automation_runs)
             values ('{}', date_trunc('month', now() at time zone 'utc'), {used})
             on conflict (account_id, month) do update set automation_runs = {used}",
            account.id
        ))
        .await;
    let _running = account.run_automations(&[]).await;
    for mail in ["a@b.co", "c@d.co"] {
        account.submit_lead(&form, mail, 0).await;
    }
    until(async || automation.runs().await.len() == 2 && account.untriggered().await == 0).await;
    until(async || automation.read().await.statistics.runs == 1).await;
    let mut statuses: Vec<_> = automation.runs().await.iter().map(|run| run.status.as_str()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, ["skipped", "success"]);
    assert_eq!(account.number("select automation_runs from monthly_usage").await, limit);
}

#[tokio::test]
async fn a_chain_of_submissions_ends_and_disabled_automations_start_nothing() {
    let account = Account::new().await;
    let form = account.lead_form().await;
    let automation = account.automation_with(&on_submission(&form, &Value::Null), None, &json!({})).await;
    for depth in [4, 5] {
        account.submit_lead(&form, "a@b.co", depth).await;
    }
    let running = account.run_automations(&[]).await;
    until(async || account.untriggered().await == 0).await;
    let depths: Vec<i16> = automation.runs().await.iter().map(|run| run.depth).collect();
    assert_eq!(depths, [4]);
    running.stop().await;
    account.submit_lead(&form, "a@b.co", 0).await;
    account.change("update automations set is_enabled = false").await;
    let _running = account.run_automations(&[]).await;
    until(async || account.untriggered().await == 0).await;
    assert_eq!(automation.runs().await.len(), 1);
}
