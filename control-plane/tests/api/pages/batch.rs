//! Batches of pages: items are independent, and the plan's limit is exact.

use std::sync::Arc;

use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::{Resource, ScopeSet};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

const BATCH: &str = "/api/pages/batch";

fn page(slug: &str) -> Value {
    json!({"slug": slug, "title": "T", "html": format!("<p>{slug}")})
}

fn with(slug: &str, part: Value) -> Value {
    let mut page = page(slug);
    page.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    page
}

async fn send(api: &Api, key: &str, body: Value) -> Value {
    let (status, response) = api.send(Method::POST, BATCH, Some(key), &body).await;
    assert_eq!(status, StatusCode::OK, "{response}");
    let count = |status: &str| statuses(&response).iter().filter(|one| *one == status).count();
    let counted = ["created", "updated", "unchanged", "error"].map(count);
    let message =
        ["created", "updated", "unchanged", "failed"].map(|name| response[name].as_u64().unwrap() as usize);
    assert_eq!(message, counted);
    response
}

fn statuses(response: &Value) -> Vec<String> {
    let results = response["results"].as_array().unwrap();
    assert!(results.iter().enumerate().all(|(at, result)| result["index"] == at));
    results.iter().map(|result| result["status"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_invalid_page_is_reported_and_does_not_block_others() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Scale).await;
    let pages = json!([
        page("first"),
        page("UPPER"),
        {"slug": "no-html", "title": "T"},
        with("colour", json!({"colour": 1})),
        with("number", json!({"title": 7})),
        with("long", json!({"html": "x".repeat(512 * 1024 + 1)})),
        with("nul", json!({"title": "a\u{0}b"})),
        with("deep", json!({"metadata": {"a": ["\u{0}"]}})),
        with("style", json!({"css": "x".repeat(128 * 1024 + 1)})),
        with("noted", json!({"metadata": {"note": "x".repeat(16 * 1024)}})),
        "page",
        null,
        [],
        with("last", json!({"css": null, "metadata": {"collection": "blog"}, "isPublished": false})),
    ]);
    let response = send(&api, &key, json!({"pages": pages})).await;
    let mut expected = vec!["error"; 14];
    (expected[0], expected[13]) = ("created", "created");
    assert_eq!(statuses(&response), expected, "{response}");
    let results = response["results"].as_array().unwrap();
    for (at, message) in [
        (1, "slug may have only"),
        (2, "html is required"),
        (3, "colour is not a field"),
        (4, "title must be a text, not"),
        (5, "html may have at most 512 KB"),
        (6, "title must not contain a NUL"),
        (7, "metadata.a[0] must not contain a NUL"),
        (8, "css may have at most"),
        (9, "metadata may have at most 16 KB as JSON"),
        (10, "must be a JSON object"),
    ] {
        assert!(results[at]["error"].as_str().unwrap().contains(message), "{}", results[at]);
        assert!(results[at]["id"].is_null() && results[at]["subdomainUrl"].is_null());
    }
    assert_eq!((&results[1]["slug"], &results[10]["slug"]), (&json!("UPPER"), &json!("")));
    assert!(results[0]["subdomainUrl"].as_str().unwrap().ends_with(".localhost:8080/first"));
    let (_, read) = api
        .send(
            Method::GET,
            &format!("/api/pages/{}", results[13]["id"].as_str().unwrap()),
            Some(&key),
            &Value::Null,
        )
        .await;
    assert_eq!((&read["isPublished"], &read["metadata"]), (&json!(false), &json!({"collection": "blog"})));
}

#[tokio::test]
async fn existing_pages_are_errors_or_updated_or_unchanged() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let first = send(&api, &key, json!({"pages": [page("one"), page("two")]})).await;
    let again = send(&api, &key, json!({"pages": [page("one"), page("three")]})).await;
    assert_eq!(statuses(&again), ["error", "created"]);
    assert_eq!(again["results"][0]["existingPageId"], first["results"][0]["id"]);

    let upsert = |pages: Value| json!({"pages": pages, "upsert": true});
    let response =
        send(&api, &key, upsert(json!([page("one"), with("two", json!({"html": "new"})), page("four")])))
            .await;
    assert_eq!(statuses(&response), ["unchanged", "updated", "created"]);
    assert_eq!(response["results"][1]["id"], first["results"][1]["id"]);
    let two = format!("/api/pages/{}", first["results"][1]["id"].as_str().unwrap());
    let (_, read) = api.send(Method::GET, &two, Some(&key), &Value::Null).await;
    assert_eq!(read["html"], "new");
    let (_, versions) = api.send(Method::GET, &format!("{two}/versions"), Some(&key), &Value::Null).await;
    assert_eq!(versions["versions"].as_array().unwrap().len(), 2, "a version to roll back to");
    let (_, usage) = api.send(Method::GET, "/api/account/usage", Some(&key), &Value::Null).await;
    assert_eq!(usage["usage"]["projects"]["used"], 4, "new pages are counted, updates are not");
}

#[tokio::test]
async fn two_items_with_one_slug_act_like_two_calls() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let other = with("one", json!({"html": "other"}));
    let response = send(&api, &key, json!({"pages": [page("one"), page("one")]})).await;
    assert_eq!(statuses(&response), ["created", "error"]);
    assert_eq!(response["results"][1]["existingPageId"], response["results"][0]["id"]);
    let response =
        send(&api, &key, json!({"pages": [page("one"), other, other, page("one")], "upsert": true})).await;
    assert_eq!(statuses(&response), ["unchanged", "updated", "unchanged", "updated"]);
}

#[tokio::test]
async fn an_invalid_batch_is_a_400_without_side_effects() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Scale).await;
    let many: Vec<Value> = (0..201).map(|number| page(&format!("page-{number}"))).collect();
    for (body, field) in [
        (json!({"pages": many}), "pages"),
        (json!({"pages": []}), "pages"),
        (json!({}), "pages"),
        (json!({"pages": {}}), "pages"),
        (json!({"pages": [page("one")], "subdomainId": "x"}), "subdomainId"),
        (json!({"pages": [page("one")], "upsert": "yes"}), "upsert"),
        (json!({"pages": [page("one")], "colour": 1}), "colour"),
        (json!([]), "body"),
    ] {
        let (status, problem) = api.send(Method::POST, BATCH, Some(&key), &body).await;
        let named = &problem["fieldErrors"][0]["field"];
        assert_eq!((status, named), (StatusCode::BAD_REQUEST, &json!(field)), "{problem}");
    }
    for body in
        [json!({"pageIds": []}), json!({"pageIds": "x"}), json!({"pageIds": vec![uuid::Uuid::nil(); 201]})]
    {
        let (status, problem) = api.send(Method::DELETE, BATCH, Some(&key), &body).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("validation_failed")));
        assert!(problem["fieldErrors"][0]["field"].as_str().unwrap().starts_with("pageIds"), "{problem}");
    }
    let missing = json!({"pages": [page("one")], "subdomainId": uuid::Uuid::nil()});
    assert_eq!(api.send(Method::POST, BATCH, Some(&key), &missing).await.0, StatusCode::NOT_FOUND);
    let (_, listed) = api.send(Method::GET, "/api/pages", Some(&key), &Value::Null).await;
    assert_eq!(listed["pages"], json!([]));
    let all = send(&api, &key, json!({"pages": many[..200]})).await;
    assert_eq!(all["created"], 200);
}

#[tokio::test]
async fn a_large_body_is_accepted_and_a_larger_one_rejected() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Scale).await;
    let html = "x".repeat(512 * 1024);
    let pages: Vec<Value> = (0..12).map(|at| with(&format!("page-{at}"), json!({"html": html}))).collect();
    let response = send(&api, &key, json!({"pages": pages})).await;
    assert_eq!(response["created"], 12);
    let beyond = json!({"pages": ["x".repeat((160 << 20) + 1)]});
    let (status, problem) = api.send(Method::POST, BATCH, Some(&key), &beyond).await;
    assert_eq!((status, &problem["code"]), (StatusCode::PAYLOAD_TOO_LARGE, &json!("payload_too_large")));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_batches_respect_the_limit() {
    let api = Arc::new(Api::start(&["store.max_connections=5"]).await);
    let key = api.trial().await;
    let mut sending = tokio::task::JoinSet::new();
    for batch in 0..4 {
        let (api, key) = (Arc::clone(&api), key.clone());
        sending.spawn(async move {
            // Every second slug occurs in every batch.
            let slug = |at: usize| {
                if at.is_multiple_of(2) { format!("both-{at}") } else { format!("own-{batch}-{at}") }
            };
            let pages: Vec<Value> = (0..8).map(|at| page(&slug(at))).collect();
            send(&api, &key, json!({"pages": pages, "upsert": true})).await
        });
    }
    let responses = sending.join_all().await;
    let created: u64 = responses.iter().map(|response| response["created"].as_u64().unwrap()).sum();
    assert_eq!(created, 10, "{responses:?}");
    let errors = responses.iter().flat_map(|response| response["results"].as_array().unwrap());
    assert!(
        errors
            .filter(|one| one["status"] == "error")
            .all(|one| one["error"].as_str().unwrap().contains("allows 10"))
    );
    let (_, listed) = api.send(Method::GET, "/api/pages", Some(&key), &Value::Null).await;
    assert_eq!(listed["pages"].as_array().unwrap().len(), 10);
    let (_, usage) = api.send(Method::GET, "/api/account/usage", Some(&key), &Value::Null).await;
    assert_eq!(usage["usage"]["projects"]["used"], 10);
}

#[tokio::test]
async fn a_restricted_key_writes_its_pages_and_learns_nothing_else() {
    let api = Api::start(&[]).await;
    let (key, account_id) = api.trial_on(Plan::Scale).await;
    let (_, folder) = api.send(Method::POST, "/api/folders", Some(&key), &json!({"name": "F"})).await;
    let inside = send(&api, &key, json!({"pages": [page("inside")], "folderId": folder["id"]})).await;
    let outside = send(&api, &key, json!({"pages": [page("outside")]})).await;
    let changed =
        json!([with("inside", json!({"html": "x"})), with("outside", json!({"html": "x"})), page("new")]);

    let folder_id = Some(folder["id"].as_str().unwrap().parse().unwrap());
    let restrictions = Restrictions { folder_id, ..Restrictions::default() };
    let (_, of_folder) = api.insert_key(account_id, ScopeSet::FULL, restrictions, None).await;
    let response = send(&api, &of_folder, json!({"pages": changed, "upsert": true})).await;
    assert_eq!(statuses(&response), ["updated", "error", "created"]);
    let (_, listed) = api.send(Method::GET, "/api/pages", Some(&of_folder), &Value::Null).await;
    assert_eq!(listed["pages"].as_array().unwrap().len(), 2, "the new page is in its folder");
    let response = send(&api, &of_folder, json!({"pages": [page("outside"), page("inside")]})).await;
    assert_eq!(response["results"][0]["existingPageId"], Value::Null);
    assert_eq!(response["results"][1]["existingPageId"], inside["results"][0]["id"]);

    let listed = [outside["results"][0]["id"].as_str().unwrap().parse().unwrap()].into();
    let restrictions = Restrictions { ids: [(Resource::Pages, listed)].into(), ..Restrictions::default() };
    let (_, of_list) = api.insert_key(account_id, ScopeSet::FULL, restrictions, None).await;
    let pages = json!([page("inside"), with("outside", json!({"html": "y"})), page("newer")]);
    let response = send(&api, &of_list, json!({"pages": pages, "upsert": true})).await;
    assert_eq!(statuses(&response), ["error", "updated", "error"]);

    let only_create = api.key_with(&key, ScopeSet::parse(["pages:create"]).unwrap()).await;
    let body = json!({"pages": [page("newest")], "upsert": true});
    let (status, problem) = api.send(Method::POST, BATCH, Some(&only_create), &body).await;
    assert_eq!((status, &problem["requiredScope"]), (StatusCode::FORBIDDEN, &json!("pages:update")));
    let ids = json!({"pageIds": [inside["results"][0]["id"], outside["results"][0]["id"]]});
    let (_, ends) = api.send(Method::DELETE, BATCH, Some(&of_folder), &ids).await;
    assert_eq!(deletion_statuses(&ends), ["deleted", "error"]);
}

fn deletion_statuses(response: &Value) -> Vec<&str> {
    response["results"].as_array().unwrap().iter().map(|result| result["status"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_batch_deletes_pages_independently_and_archives_their_entries() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let other_key = api.trial().await;
    let created = send(&api, &key, json!({"pages": [page("one"), page("two")]})).await;
    let other_account = send(&api, &other_key, json!({"pages": [page("one")]})).await;
    let [one, two] = [0, 1].map(|at| created["results"][at]["id"].as_str().unwrap().to_owned());
    let path = format!("/api/pages/{one}");
    api.send(Method::PUT, &path, Some(&key), &json!({"entryTemplate": "{{a}}"})).await;
    for number in 0..3 {
        let entry = json!({"data": {"a": number}});
        let (status, _) = api.send(Method::POST, &format!("{path}/entries"), Some(&key), &entry).await;
        assert_eq!(status, StatusCode::CREATED);
    }
    let ids = json!({"pageIds": [one, other_account["results"][0]["id"], one, two]});
    let (status, ends) = api.send(Method::DELETE, BATCH, Some(&key), &ids).await;
    assert_eq!(
        (status, deletion_statuses(&ends)),
        (StatusCode::OK, vec!["deleted", "error", "error", "deleted"])
    );
    assert_eq!(
        (&ends["deleted"], &ends["failed"], &ends["entriesArchived"]),
        (&json!(2), &json!(2), &json!(3))
    );
    assert!(ends["results"][1]["error"].as_str().unwrap().contains("no such page"));
    let (_, usage) = api.send(Method::GET, "/api/account/usage", Some(&key), &Value::Null).await;
    assert_eq!(usage["usage"]["projects"]["used"], 0);
    let (_, listed) = api.send(Method::GET, "/api/pages", Some(&other_key), &Value::Null).await;
    assert_eq!(listed["pages"].as_array().unwrap().len(), 1);
}
