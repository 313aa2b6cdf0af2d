//! Deploys that would take more than their share.

use axum::body::Body;
use domain::plans::Plan;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use super::owner::{Owner, zip_of};
use crate::harness::exchange;

#[tokio::test]
async fn a_deploy_beyond_the_storage_of_the_plan_writes_nothing_to_the_store() {
    let owner = Owner::with_plan(Plan::Free).await;
    let files: Vec<(String, Vec<u8>)> = (0..11).map(|n| (format!("{n}.bin"), vec![n; 2 << 20])).collect();
    let mut all: Vec<(&str, &[u8])> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    all.push(("index.html", b"x"));
    let id = owner.uploaded(&zip_of(&all)).await;
    let (status, problem) = owner.process(&id).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("quota_exceeded")), "{problem}");
    assert_eq!(problem["limit"], 20 << 20);
    let only_the_zip =
        "do $$ begin if (select count(*) from blobs) <> 1 then raise 'files were stored'; end if; end $$";
    owner.api.execute(only_the_zip).await.unwrap();

    // Ten files fit, and again in place of themselves. A rewritten style sheet counts as it is stored.
    all.remove(0);
    owner.deploy(&all).await;
    owner.deploy(&all).await;
    assert_eq!(owner.stored_bytes().await, 20 << 20);
    let sheet = "a{b:url(x.png)}".repeat(1_000);
    let mut more = all[1..].to_vec();
    let spaces = vec![b' '; 2_000_000];
    more.extend([("0.css", spaces.as_slice()), ("1.css", sheet.as_bytes()), ("x.png", b"x")]);
    let id = owner.uploaded(&zip_of(&more)).await;
    let (status, problem) = owner.process(&id).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("quota_exceeded")), "{problem}");
}

#[tokio::test]
async fn a_deploy_that_waits_to_store_its_files_keeps_no_other_account_waiting() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let (first, second) = (
        owner.uploaded(&zip_of(&[("index.html", b"1")])).await,
        owner.uploaded(&zip_of(&[("index.html", b"2")])).await,
    );
    let with_file = owner.uploaded(&zip_of(&[("index.html", b"1"), ("a.js", b"1")])).await;
    let impatient = owner.api.replica(&["deploys.max_concurrent=1", "deploys.queue_timeout=100ms"]);
    let (other_key, other_id) = owner.api.trial_on(Plan::Pro).await;
    let zip = zip_of(&[("index.html", b"3")]);
    let (_, third) =
        owner.api.send(Method::POST, "/api/deploy", Some(&other_key), &json!({"sizeBytes": zip.len()})).await;
    let third = third["deployId"].as_str().unwrap();
    owner.api.upload(other_id, third.parse().unwrap(), &zip).await;

    // One waits for the account's counters while it stores its files.
    let mut held = owner.api.begin().await;
    store::usage::lock(&mut held, owner.id).await.unwrap();
    let process = |key: &str, id: &str| {
        let (replica, key, path) = (impatient.clone(), key.to_owned(), format!("/api/deploy/{id}/process"));
        async move {
            let request = Request::post(path).header("authorization", format!("Bearer {key}"));
            exchange(replica, request.body(Body::empty()).unwrap()).await
        }
    };
    let running = tokio::spawn(process(&owner.key, &with_file));
    owner.api.until_lock_wait().await;
    let (status, headers, problem) = process(&owner.key, &second).await;
    assert_eq!(
        (status, &problem["code"], headers.contains_key("retry-after")),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("unavailable"), true),
        "another deploy of the same account: {problem}"
    );
    let (_, deploy) = owner.send(Method::GET, &format!("/api/deploy/{second}"), Value::Null).await;
    assert_eq!(deploy["status"], "uploaded", "it may be processed later");
    let (status, _, done) = process(&other_key, third).await;
    assert_eq!(status, StatusCode::OK, "the only permit to unpack is free: {done}");
    store::commit(held).await.unwrap();
    assert_eq!(running.await.unwrap().0, StatusCode::OK);
    for id in [&first, &second] {
        assert_eq!(process(&owner.key, id).await.0, StatusCode::OK, "its turn has come");
    }
}

#[tokio::test]
async fn a_zip_with_more_files_than_the_plan_allows_is_rejected_and_one_with_as_many_is_published() {
    for (plan, max_files) in [(Plan::Free, 2_000), (Plan::Pro, 20_000)] {
        let owner = Owner::with_plan(plan).await;
        let names: Vec<String> = (1..=max_files).map(|number| format!("{number}.txt")).collect();
        let mut files: Vec<(&str, &[u8])> =
            names.iter().map(|name| (name.as_str(), b"x".as_slice())).collect();
        files.push(("index.html", b"x"));
        let id = owner.uploaded(&zip_of(&files)).await;
        let (status, problem) = owner.process(&id).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("validation_failed")));
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains(&format!("more than {max_files} files, the maximum of the plan")),
            "{detail}"
        );
        assert_eq!(owner.stored_bytes().await, 0);

        // Files that are never served don't count.
        files[0] = (".env", b"secret");
        let done = owner.deploy(&files).await;
        assert_eq!(done["stats"]["filesServed"], max_files, "{:?}", done["stats"]);
        assert_eq!((owner.stored_bytes().await, owner.file(".env").await), (max_files - 1, None));
    }
}
