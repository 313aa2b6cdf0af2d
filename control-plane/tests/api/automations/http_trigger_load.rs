//! Many requests to http triggers at once: batches of inserts, and the exact limit of the month.

use std::collections::BTreeSet;

use domain::plans::Plan;
use futures::future::join_all;
use serde_json::{Value, json};

use super::fixture::{Owner, http};

async fn used(owner: &Owner) -> i64 {
    let used = "select coalesce(sum(automation_runs), 0)::text from monthly_usage";
    owner.column(used).await.parse().unwrap()
}

#[tokio::test]
async fn a_hundred_requests_at_once_start_exactly_the_runs_that_the_month_has_left() {
    let owner = Owner::on(Plan::Free, &[]).await;
    let (path, created) = owner.automation(http()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let limit = Plan::Free.limits().automation_runs_per_month;
    let month = format!(
        "insert into monthly_usage (account_id, month, automation_runs)
         values ('{}', date_trunc('month', now() at time zone 'utc')::date, {})",
        owner.account_id,
        limit - 10
    );
    owner.api.execute(&month).await.unwrap();
    let responses = join_all((0..100).map(|at| {
        let owner = &owner;
        async move { owner.trigger(url, &json!({"at": at})).await }
    }))
    .await;
    let (started, refused): (Vec<_>, Vec<_>) = responses.iter().partition(|response| response.status == 202);
    let ids: BTreeSet<_> = started.iter().map(|response| response.run_id()).collect();
    assert_eq!((started.len(), ids.len()), (10, 10));
    for response in refused {
        let problem = response.json();
        assert_eq!(
            (response.status.as_u16(), &problem["code"]),
            (403, &json!("quota_exceeded")),
            "{problem}"
        );
    }
    assert_eq!(owner.claim().await.len(), 10);
    assert_eq!(used(&owner).await, limit);
    let logs = owner.get(&format!("{path}/logs?limit=100")).await;
    assert_eq!(logs["logs"].as_array().unwrap().len(), 10, "refused ones leave nothing");
}

#[tokio::test]
async fn requests_of_several_accounts_share_a_batch_and_keep_their_counts() {
    let owner = Owner::on(Plan::Free, &[]).await;
    let (_, created) = owner.automation(http()).await;
    let (other_key, _) = owner.api.trial_on(Plan::Free).await;
    let other = owner.api.send(http::Method::POST, "/api/automations", Some(&other_key), &http()).await.1;
    let urls = [created["triggerUrl"].as_str().unwrap(), other["triggerUrl"].as_str().unwrap()];
    let responses = join_all((0..200).map(|at| {
        let owner = &owner;
        async move { owner.trigger(urls[at % 2], &json!({"at": at})).await }
    }))
    .await;
    assert!(responses.iter().all(|response| response.status == 202), "{:?}", responses[0]);
    let ids: BTreeSet<_> = responses.iter().map(super::fixture::PublicResponse::run_id).collect();
    assert_eq!((ids.len(), used(&owner).await), (200, 200));
    assert_eq!(owner.claim().await.len(), 100);
}

#[tokio::test]
async fn a_run_that_postgres_refuses_fails_alone() {
    let owner = Owner::new(&[]).await;
    let (_, created) = owner.automation(http()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    owner
        .api
        .execute(
            "alter table automation_runs add check (trigger::text not like '%poison%'),
                                         add check (trigger::text not like '%venom%')",
        )
        .await
        .unwrap();
    let responses = join_all((0..40).map(|at| {
        let owner = &owner;
        let payload = match at {
            7 => "poison",
            9 => "venom",
            _ => "water",
        };
        async move { owner.trigger(url, &json!(payload)).await }
    }))
    .await;
    let failed: Vec<usize> = (0..40).filter(|at| responses[*at].status != 202).collect();
    assert_eq!(failed, [7, 9]);
    assert_eq!(owner.claim().await.len(), 38);
}

#[tokio::test]
async fn a_request_whose_client_has_gone_starts_no_run_later() {
    let owner = Owner::new(&[]).await;
    let (_, created) = owner.automation(http()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let mut lock = owner.api.begin().await;
    let locked = "select from monthly_usage for update";
    assert_eq!(owner.trigger(url, &json!(0)).await.status, 202, "the month has a row from now on");
    sqlx::query(locked).execute(&mut *lock).await.unwrap();
    {
        // A writer waits with a batch of the account. Requests that arrive meanwhile are queued for the next one.
        let mut waiting = Box::pin(join_all((0..2).map(|at| {
            let owner = &owner;
            async move { owner.trigger(url, &json!(at)).await }
        })));
        tokio::select! {
            _ = &mut waiting => panic!("answered while the counter was locked"),
            () = owner.api.until_lock_wait() => {}
        }
        let body = json!("gone");
        let mut gone = Box::pin(owner.trigger(url, &body));
        assert!(futures::poll!(&mut gone).is_pending());
        tokio::task::yield_now().await;
        drop(gone);
        store::rollback(lock).await.unwrap();
        assert!(waiting.await.iter().all(|response| response.status == 202));
    }
    let payloads: Vec<Value> =
        owner.claim().await.into_iter().map(|run| run.trigger["payload"].clone()).collect();
    assert_eq!(payloads.len(), 3, "{payloads:?}");
}
