//! One run at each time of a schedule, however many job-runners look.

use std::collections::BTreeSet;

use chrono::{DurationRound, TimeDelta};
use sandbox::test::{eventually, until};
use serde_json::{Value, json};

use crate::fixture::account::{Account, now};

fn scheduled(cron: &str, catch_up: &str) -> Value {
    json!({
        "trigger": {"type": "schedule", "cron": cron, "timezone": "Europe/Berlin", "catchUp": catch_up},
        "steps": [{"id": "a", "type": "set", "values": {"at": "{{ trigger.scheduledAt }}"}}],
    })
}

#[tokio::test]
async fn two_job_runners_start_one_run_for_each_time() {
    let account = Account::new().await;
    let minute = now().duration_trunc(TimeDelta::minutes(1)).unwrap();
    let automation = account.automation_with(&scheduled("* * * * *", "last"), Some(minute), &json!({})).await;
    let (_one, _other) = (account.run_automations(&[]).await, account.run_automations(&[]).await);
    until(async || automation.read().await.statistics.runs > 0).await;
    let next = automation.read().await.next_fire_at.unwrap();
    assert!(next > minute && next <= now() + TimeDelta::minutes(1));
    for _ in 0..3 {
        // As if a job-runner that was killed had not stored that the time is over.
        account.change(&format!("update automations set next_fire_at = '{}'", minute.to_rfc3339())).await;
        until(async || automation.read().await.next_fire_at > Some(minute)).await;
    }
    let runs = automation.runs().await;
    let mut times: Vec<_> = runs.iter().map(|run| run.trigger["scheduledAt"].as_str().unwrap()).collect();
    times.dedup();
    assert_eq!(times.len(), runs.len(), "{times:?}");
    assert_eq!(runs[0].trigger_type, "schedule");
}

#[tokio::test]
async fn of_missed_times_the_last_one_is_caught_up_or_none() {
    let account = Account::new().await;
    // Yesterday and today at hours that have passed: the last time is at least a minute ago.
    let since = now() - TimeDelta::days(3);
    let hour = (now() - TimeDelta::hours(2)).with_timezone(&chrono::FixedOffset::east_opt(0).unwrap());
    let cron = format!("0 {} * * *", hour.format("%-H"));
    let mut definitions = [scheduled(&cron, "last"), scheduled(&cron, "none")];
    for definition in &mut definitions {
        definition["trigger"]["timezone"] = json!("UTC");
    }
    let last = account.automation_with(&definitions[0], Some(since), &json!({})).await;
    let none = account.automation_with(&definitions[1], Some(since), &json!({})).await;
    let _running = account.run_automations(&[]).await;
    let run = eventually(async || last.runs().await.pop()).await;
    let expected = hour.duration_trunc(TimeDelta::hours(1)).unwrap();
    assert_eq!(run.trigger, json!({"scheduledAt": expected.format("%Y-%m-%dT%H:%M:%SZ").to_string()}));
    for automation in [&last, &none] {
        until(async || automation.read().await.next_fire_at > Some(now())).await;
    }
    assert_eq!((last.runs().await.len(), none.runs().await.len()), (1, 0));
}

#[tokio::test]
async fn a_suspended_account_and_a_disabled_automation_start_no_runs() {
    let account = Account::new().await;
    let minute = now().duration_trunc(TimeDelta::minutes(1)).unwrap();
    let automation = account.automation_with(&scheduled("* * * * *", "last"), Some(minute), &json!({})).await;
    account.change("update accounts set suspended_at = now()").await;
    let _running = account.run_automations(&[]).await;
    until(async || automation.read().await.next_fire_at > Some(minute)).await;
    assert!(automation.runs().await.is_empty());
}

#[tokio::test]
async fn a_time_beyond_the_months_limit_leaves_one_skipped_row_and_the_schedule_goes_on() {
    let account = Account::new().await;
    let limit = super::PLAN.limits().automation_runs_per_month;
    account
        .change(&format!(
            "insert into monthly_usage (account_id, month, automation_runs)
             values ('{}', date_trunc('month', now() at time zone 'utc'), {limit})
             on conflict (account_id, month) do update set automation_runs = {limit}",
            account.id
        ))
        .await;
    let minute = now().duration_trunc(TimeDelta::minutes(1)).unwrap();
    let automation = account.automation_with(&scheduled("* * * * *", "last"), Some(minute), &json!({})).await;
    let (one, other) = (account.run_automations(&[]).await, account.run_automations(&[]).await);
    let has_advanced = async || automation.read().await.next_fire_at > Some(minute);
    until(has_advanced).await;
    assert!(automation.read().await.next_fire_at.unwrap() <= now() + TimeDelta::minutes(1));
    for _ in 0..3 {
        // As if a job-runner that was killed had not stored that the time is over.
        account.change(&format!("update automations set next_fire_at = '{}'", minute.to_rfc3339())).await;
        until(has_advanced).await;
    }
    one.stop().await;
    other.stop().await;
    let runs = automation.runs().await;
    assert!(runs.iter().all(|run| (run.status.as_str(), run.due_at) == ("skipped", None)), "{runs:?}");
    // Usually one; another one if a minute begins during the test.
    let times: BTreeSet<_> = runs.iter().map(|run| run.trigger["scheduledAt"].as_str().unwrap()).collect();
    assert!(!runs.is_empty() && times.len() == runs.len(), "{times:?}");
    assert_eq!(automation.read().await.statistics.runs, 0);
    assert_eq!(account.number("select automation_runs from monthly_usage").await, limit);
}
