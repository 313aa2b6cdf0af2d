//! How many previews an account has and who sees them, and what a preview becomes when the site has changed meanwhile.

use cache::BusEvent;
use contract::{Change, Signal};
use domain::plans::Plan;
use futures::StreamExt;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::owner::{Owner, zip_of};
use crate::harness::send_to;

const FILES: [(&str, &[u8]); 2] = [("index.html", b"next"), ("a.js", b"22")];

#[tokio::test]
async fn an_account_has_at_most_as_many_previews_as_allowed_also_under_races() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let replicas: Vec<_> = (0..4).map(|_| owner.api.replica(&["deploys.max_previews=2"])).collect();
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(owner.uploaded(&zip_of(&FILES)).await);
    }
    let process = |at: usize| {
        let path = format!("/api/deploy/{}/process", ids[at]);
        let (replica, key) = (&replicas[at], owner.key.as_str());
        async move { send_to(replica, Method::POST, &path, Some(key), &json!({"publish": false})).await }
    };
    let done = tokio::join!(process(0), process(1), process(2), process(3));
    let responses = [done.0, done.1, done.2, done.3];
    let made = responses.iter().filter(|(status, _)| *status == StatusCode::CREATED).count();
    assert_eq!(made, 2, "{responses:?}");
    assert_eq!(owner.stored_bytes().await, 2 * 6);
    let at = responses.iter().position(|(status, _)| *status != StatusCode::CREATED).unwrap();
    let (status, problem) = &responses[at];
    assert_eq!((*status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
    assert!(problem["hint"].as_str().unwrap().contains("DELETE /api/deploy/{id}"), "{problem}");
    let (_, state) = owner.send(Method::GET, &format!("/api/deploy/{}", ids[at]), Value::Null).await;
    assert_eq!(state["status"], "uploaded", "it can be processed again: {state}");

    // A deleted preview makes room, and publishing is always possible.
    let first = responses.iter().find(|(status, _)| *status == StatusCode::CREATED).unwrap();
    let path = format!("/api/deploy/{}", first.1["deployId"].as_str().unwrap());
    assert_eq!(owner.send(Method::DELETE, &path, Value::Null).await.0, StatusCode::OK);
    assert_eq!(process(at).await.0, StatusCode::CREATED);
    let (status, _) = owner.process(&owner.uploaded(&zip_of(&FILES)).await).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn a_preview_beyond_the_plans_storage_is_rejected_and_stores_nothing() {
    let owner = Owner::with_plan(Plan::Free).await;
    let live = vec![0; 2 << 20];
    let names: Vec<String> = (0..8).map(|at| format!("{at}.bin")).collect();
    let mut files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), live.as_slice())).collect();
    files.push(("index.html", b"x"));
    owner.deploy(&files).await;
    let before = owner.stored_bytes().await;
    let id = owner.uploaded(&zip_of(&files)).await;
    let (status, problem) = owner.process_with(&id, json!({"publish": false})).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("quota_exceeded")), "{problem}");
    assert_eq!(owner.stored_bytes().await, before);
    // The same files fit when they replace those of the live site.
    assert_eq!(owner.process(&id).await.0, StatusCode::OK);
    assert_eq!(owner.stored_bytes().await, before);
}

#[tokio::test]
async fn a_preview_of_another_account_is_not_found() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let preview = owner.preview(&FILES).await;
    let (key, _) = owner.api.trial_on(Plan::Pro).await;
    let id = preview["deployId"].as_str().unwrap();
    for (method, path) in [
        (Method::GET, format!("/api/deploy/{id}")),
        (Method::POST, format!("/api/deploy/{id}/publish")),
        (Method::POST, format!("/api/deploy/{id}/process")),
        (Method::DELETE, format!("/api/deploy/{id}")),
    ] {
        let (status, problem) = owner.api.send(method.clone(), &path, Some(&key), &Value::Null).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}: {problem}");
    }
    let (_, listed) = owner.api.send(Method::GET, "/api/deploy", Some(&key), &Value::Null).await;
    assert_eq!(listed["deploys"], json!([]));
    assert_eq!(owner.publish(&preview).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_key_restricted_to_pages_makes_no_preview_and_publishes_none_with_other_pages() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let live = owner.deploy(&FILES).await;
    let key = owner.restricted_key(json!({"pages": [live["pages"][0]["id"]]})).await;
    let send = async |path: String, body: Value| {
        let (status, problem) = owner.api.send(Method::POST, &path, Some(&key), &body).await;
        (status, problem["code"].as_str().unwrap_or_default().to_owned())
    };
    let forbidden = (StatusCode::FORBIDDEN, "insufficient_scope".to_owned());
    let id = owner.uploaded_by(&key, &zip_of(&[("secret.html", b"phishing")])).await;
    assert_eq!(send(format!("/api/deploy/{id}/process"), json!({"publish": false})).await, forbidden);
    let (same, other) = (owner.preview(&FILES).await, owner.preview(&[("other.html", b"x")]).await);
    let publish = |preview: &Value| format!("/api/deploy/{}/publish", preview["deployId"].as_str().unwrap());
    assert_eq!(send(publish(&other), Value::Null).await, forbidden);
    assert_eq!(owner.deploy_state(&other).await["status"], "preview", "it can be published by another key");
    assert_eq!(owner.pages().await.len(), 1);
    assert_eq!(send(publish(&same), Value::Null).await.0, StatusCode::OK);
    assert_eq!(owner.publish(&other).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_key_restricted_to_pages_neither_sees_nor_deletes_a_preview_of_other_pages() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let live = owner.deploy(&FILES).await;
    let preview = owner.preview(&[("secret.html", b"secret")]).await;
    let key = owner.restricted_key(json!({"pages": [live["pages"][0]["id"]]})).await;
    let path = format!("/api/deploy/{}", preview["deployId"].as_str().unwrap());
    let (_, read) = owner.api.send(Method::GET, &path, Some(&key), &Value::Null).await;
    let (_, list) = owner.api.send(Method::GET, "/api/deploy", Some(&key), &Value::Null).await;
    assert_eq!(list["deploys"].as_array().map(Vec::len), Some(2), "{list}");
    for shown in [&read, &list["deploys"][0]] {
        assert_eq!((&shown["status"], &shown["previewUrl"]), (&json!("preview"), &Value::Null), "{shown}");
    }
    let (status, problem) = owner.api.send(Method::DELETE, &path, Some(&key), &Value::Null).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::FORBIDDEN, &json!("insufficient_scope")),
        "{problem}"
    );
    assert_eq!(owner.deploy_state(&preview).await["previewUrl"], preview["previewUrl"]);
    assert_eq!(owner.send(Method::DELETE, &path, Value::Null).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_key_restricted_to_a_site_neither_finds_nor_takes_unprocessed_deploys_of_other_sites() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let file = |bytes: &[u8]| json!({"sha256": hex::encode(Sha256::digest(bytes)), "sizeBytes": bytes.len()});
    let files = json!({"index.html": file(FILES[0].1), "a.js": file(FILES[1].1)});
    let announce = async |size: usize| {
        let body = json!({"sizeBytes": size, "files": files});
        owner.send(Method::POST, "/api/deploy", body).await.1
    };
    let zip = zip_of(&FILES);
    let first = announce(zip.len()).await["deployId"].as_str().unwrap().to_owned();
    owner.api.upload(owner.id, first.parse().unwrap(), &zip).await;
    assert_eq!(owner.process(&first).await.0, StatusCode::OK);
    // Nothing is missing, so the deploy can be processed without an upload.
    let announced = announce(0).await;
    assert_eq!(announced["uploadUrl"], Value::Null, "{announced}");
    let path = format!("/api/deploy/{}", announced["deployId"].as_str().unwrap());
    let (_, other) =
        owner.send(Method::POST, "/api/account/subdomains", json!({"name": "another-site"})).await;
    let key = owner.restricted_key(json!({"subdomains": [other["id"]]})).await;
    let send =
        async |method: Method, path: &str, body: Value| owner.api.send(method, path, Some(&key), &body).await;
    assert_eq!(send(Method::GET, "/api/deploy", Value::Null).await.1["deploys"], json!([]));
    let to_other = json!({"subdomainId": other["id"]});
    let preview = json!({"subdomainId": other["id"], "publish": false});
    for (method, path, body) in [
        (Method::GET, path.clone(), Value::Null),
        (Method::POST, format!("{path}/process"), preview.clone()),
        (Method::POST, format!("{path}/process"), to_other),
        (Method::POST, format!("{path}/publish"), Value::Null),
        (Method::POST, format!("{path}/rollback"), Value::Null),
        (Method::DELETE, path.clone(), Value::Null),
    ] {
        let (status, problem) = send(method.clone(), &path, body).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::NOT_FOUND, &json!("not_found")),
            "{method} {path}: {problem}"
        );
    }
    let own = owner.uploaded_by(&key, &zip_of(&FILES)).await;
    let (_, list) = send(Method::GET, "/api/deploy", Value::Null).await;
    assert_eq!(
        (&list["deploys"][0]["deployId"], list["deploys"].as_array().unwrap().len()),
        (&json!(own), 1)
    );
    let (status, made) = send(Method::POST, &format!("/api/deploy/{own}/process"), preview).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let (status, done) = owner.process(announced["deployId"].as_str().unwrap()).await;
    assert_eq!(status, StatusCode::OK, "{done}");
}

#[tokio::test]
async fn a_preview_that_begins_or_ends_invalidates_its_own_host_only() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let mut events = std::pin::pin!(owner.api.bus().subscribe());
    assert_eq!(events.next().await, Some(BusEvent::Lagged));
    let host = |preview: &Value| {
        let host = preview["previewUrl"].as_str().unwrap().strip_prefix("http://").unwrap();
        Change::Host { host: host.split_once('.').unwrap().0.to_owned() }
    };
    let site = Change::Site { subdomain_id: owner.subdomain_id };
    let (deleted, published) = (owner.preview(&FILES).await, owner.preview(&FILES).await);
    let path = format!("/api/deploy/{}", deleted["deployId"].as_str().unwrap());
    assert_eq!(owner.send(Method::DELETE, &path, Value::Null).await.0, StatusCode::OK);
    assert_eq!(owner.publish(&published).await.0, StatusCode::OK);
    let unprocessed = owner.uploaded(&zip_of(&FILES)).await;
    let path = format!("/api/deploy/{unprocessed}");
    assert_eq!(owner.send(Method::DELETE, &path, Value::Null).await.0, StatusCode::OK);
    owner.deploy(&FILES).await;
    let expected = [host(&deleted), host(&published), host(&deleted), site.clone(), host(&published), site];
    for change in expected {
        assert_eq!(events.next().await, Some(BusEvent::Message(Signal::Changed(change))));
    }
}

#[tokio::test]
async fn deploys_are_listed_newest_first_a_page_at_a_time() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let mut ids = Vec::new();
    let (live, preview) = (owner.deploy(&FILES).await, owner.preview(&FILES).await);
    for deploy in [&live, &preview] {
        ids.push(deploy["deployId"].as_str().unwrap().to_owned());
    }
    for _ in 0..3 {
        ids.push(owner.uploaded(&zip_of(&FILES)).await);
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/deploy?limit=2{cursor}");
        let (status, list) = owner.send(Method::GET, &path, Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{list}");
        found.extend(list["deploys"].as_array().unwrap().clone());
        match list["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let listed: Vec<_> = found.iter().map(|deploy| deploy["deployId"].as_str().unwrap().to_owned()).collect();
    ids.reverse();
    assert_eq!(listed, ids);
    let (unprocessed, previewed, served) = (&found[0], &found[3], &found[4]);
    assert_eq!(
        (&unprocessed["status"], &unprocessed["subdomainId"], &unprocessed["siteUrl"], &unprocessed["stats"]),
        (&json!("uploaded"), &Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(
        (&previewed["status"], &previewed["previewUrl"], &previewed["isLive"]),
        (&json!("preview"), &preview["previewUrl"], &json!(false))
    );
    assert_eq!(
        (&served["status"], &served["isLive"], &served["stats"]),
        (&json!("processed"), &json!(true), &live["stats"])
    );

    // A key for another site sees no deploy of this one.
    let body = json!({"name": "another-site"});
    let (_, other) = owner.send(Method::POST, "/api/account/subdomains", body).await;
    let key = owner.restricted_key(json!({"subdomains": [other["id"]]})).await;
    let (_, list) = owner.api.send(Method::GET, "/api/deploy", Some(&key), &Value::Null).await;
    assert_eq!(list["deploys"], json!([]), "those without a site belong to another key");
    let path = format!("/api/deploy/{}/publish", preview["deployId"].as_str().unwrap());
    let (status, _) = owner.api.send(Method::POST, &path, Some(&key), &Value::Null).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn pages_are_planned_for_the_site_as_it_is_when_a_preview_goes_live() {
    let owner = Owner::with_plan(Plan::Free).await;
    let names: Vec<String> = (0..30).map(|at| format!("p{at:02}.html")).collect();
    let mut files: Vec<(&str, &[u8])> =
        names.iter().map(|name| (name.as_str(), b"<p>x".as_slice())).collect();
    files.push(("index.html", b"home"));
    let preview = owner.preview(&files).await;
    let limited = |response: &Value| {
        let files = response["files"].as_array().unwrap();
        files.iter().filter(|file| file["reason"] == "project_limit").count()
    };
    let before = limited(&preview);
    assert!(before > 0 && before < 30, "{preview}");
    // One project less is left, and a page of the API has the slug of a file.
    let page = json!({"slug": "p29", "title": "T", "html": "made"});
    assert_eq!(owner.send(Method::POST, "/api/pages", page).await.0, StatusCode::CREATED);
    let form = json!({"name": "F", "fields": [{"name": "email", "label": "E-mail", "type": "email"}]});
    assert_eq!(owner.send(Method::POST, "/api/forms", form).await.0, StatusCode::CREATED);
    let (status, done) = owner.publish(&preview).await;
    assert_eq!(status, StatusCode::OK, "{done}");
    // The page of the API is updated and takes no project, so one file more becomes a page and two fewer are created.
    assert_eq!(limited(&done), before + 1, "{done}");
    let pages = done["pages"].as_array().unwrap();
    assert_eq!(pages.iter().find(|page| page["slug"] == "p29").unwrap()["status"], "updated");
    assert_eq!(pages.len() + limited(&done), 31);
    assert_eq!(owner.pages().await.len(), pages.len());
    assert_eq!(done["stats"]["filesServed"], 31);
    for file in done["files"].as_array().unwrap() {
        let path = file["path"].as_str().unwrap();
        assert_eq!(owner.file(path).await.unwrap(), "<p>x", "{path}");
    }
}

#[tokio::test]
async fn previews_do_not_push_deploys_out_of_what_can_be_rolled_back() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let first = owner.deploy(&[("index.html", b"one"), ("a.js", b"1")]).await;
    let mut previews = Vec::new();
    for at in 0..6_u8 {
        previews.push(owner.preview(&[("index.html", b"next"), ("a.js", &[b'a' + at])]).await);
    }
    let second = owner.deploy(&[("index.html", b"two"), ("a.js", b"2")]).await;
    owner.roll_back(&second).await;
    assert_eq!(owner.file("a.js").await.unwrap(), "1");
    assert_eq!(owner.deploy_state(&first).await["isLive"], true);
    let (status, done) = owner.publish(&previews[0]).await;
    assert_eq!(status, StatusCode::OK, "{done}");
    assert_eq!(owner.file("a.js").await.unwrap(), "a");
}

#[tokio::test]
async fn an_unprocessed_deploy_can_be_deleted_and_its_upload_with_it() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let (_, announced) = owner.send(Method::POST, "/api/deploy", json!({"sizeBytes": 10})).await;
    let ids = [announced["deployId"].as_str().unwrap().to_owned(), owner.uploaded(&zip_of(&FILES)).await];
    for id in &ids {
        let path = format!("/api/deploy/{id}");
        let statement =
            format!("update deploys set leased_until = now() + interval '1 hour' where id = '{id}'");
        owner.api.execute(&statement).await.unwrap();
        assert_eq!(
            owner.send(Method::DELETE, &path, Value::Null).await.0,
            StatusCode::CONFLICT,
            "in process"
        );
        owner
            .api
            .execute(&format!("update deploys set leased_until = null where id = '{id}'"))
            .await
            .unwrap();
        assert_eq!(owner.send(Method::DELETE, &path, Value::Null).await.0, StatusCode::OK);
        assert_eq!(owner.send(Method::DELETE, &path, Value::Null).await.0, StatusCode::NOT_FOUND);
    }
    let nothing_left = "do $$ begin
        assert not exists (select from deploys) and not exists (select from uploads)
            and not exists (select from blobs where look_at is null);
        end $$";
    owner.api.execute(nothing_left).await.unwrap();
    assert_eq!(owner.stored_bytes().await, 0);
}
