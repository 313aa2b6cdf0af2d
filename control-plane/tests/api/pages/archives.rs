//! Archives: entries of a deleted page can be restored to any page, without duplicates.

use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::{Resource, ScopeSet};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

async fn page(api: &Api, key: &str, part: Value) -> String {
    let mut body = json!({"slug": "index", "title": "T", "html": "x", "entryTemplate": "{{a}}"});
    body.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    let (status, created) = api.send(Method::POST, "/api/pages", Some(key), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    format!("/api/pages/{}", created["id"].as_str().unwrap())
}

async fn add(api: &Api, key: &str, page: &str, value: i32) {
    let body = json!({"data": {"a": value}});
    let (status, entry) = api.send(Method::POST, &format!("{page}/entries"), Some(key), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{entry}");
}

async fn archives(api: &Api, key: &str) -> Vec<Value> {
    let (status, listed) = api.send(Method::GET, "/api/pages/archives", Some(key), &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{listed}");
    listed["archives"].as_array().unwrap().clone()
}

async fn restore(api: &Api, key: &str, page: &str, archive: &Value) -> (StatusCode, Value) {
    let body = json!({"archiveId": archive["id"]});
    api.send(Method::POST, &format!("{page}/restore-entries"), Some(key), &body).await
}

/// Creates a page with two entries, deletes it and returns the archive.
async fn archived(api: &Api, key: &str, part: Value) -> Value {
    let page = page(api, key, part).await;
    for value in [1, 2] {
        add(api, key, &page, value).await;
    }
    assert_eq!(api.send(Method::DELETE, &page, Some(key), &Value::Null).await.0, StatusCode::OK);
    archives(api, key).await.pop().unwrap()
}

#[tokio::test]
async fn entries_of_a_deleted_page_are_archived_and_restored_once() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let without = page(&api, &key, json!({"slug": "without"})).await;
    api.send(Method::DELETE, &without, Some(&key), &Value::Null).await;
    assert_eq!(archives(&api, &key).await, Vec::<Value>::new(), "a page without entries leaves no archive");
    let archive = archived(&api, &key, json!({})).await;
    assert_eq!((&archive["slug"], &archive["entryCount"]), (&json!("index"), &json!(2)));
    let by = archive["deletedBy"].as_str().unwrap();
    assert!(by.contains(&key[..13]) && !by.contains(&key), "{by}");

    let page = page(&api, &key, json!({"entryTemplate": null})).await;
    let done = |entries: i32, total: i32, template: bool| json!([true, entries, total, template]);
    let shown = |response: &Value| {
        json!([
            response["restored"],
            response["entriesRestored"],
            response["totalEntries"],
            response["templateRestored"]
        ])
    };
    let (status, first) = restore(&api, &key, &page, &archive).await;
    assert_eq!((status, shown(&first)), (StatusCode::OK, done(2, 2, true)), "{first}");
    add(&api, &key, &page, 3).await;
    let (_, again) = restore(&api, &key, &page, &archive).await;
    assert_eq!(shown(&again), done(0, 3, false), "a repetition changes nothing");
    let (_, read) = api.send(Method::GET, &page, Some(&key), &Value::Null).await;
    let values: Vec<&Value> =
        read["entries"].as_array().unwrap().iter().map(|entry| &entry["data"]["a"]).collect();
    assert_eq!((values, &read["entryTemplate"]), (vec![&json!(3), &json!(2), &json!(1)], &json!("{{a}}")));

    let one = format!("{page}/entries/{}", read["entries"][2]["id"].as_str().unwrap());
    api.send(Method::DELETE, &one, Some(&key), &Value::Null).await;
    assert_eq!(
        shown(&restore(&api, &key, &page, &archive).await.1),
        done(1, 3, false),
        "missing entries are restored"
    );
    assert_eq!(archives(&api, &key).await.len(), 1, "the archive stays");
}

#[tokio::test]
async fn an_archive_records_the_deleting_key() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let page = page(&api, &key, json!({})).await;
    add(&api, &key, &page, 1).await;
    let cookie = api.sign_in(api.account_of(&key).await).await;
    let headers = [("cookie", cookie), ("origin", "http://localhost:8080".to_owned())];
    let (status, deleted) = api.send_with(Method::DELETE, &page, &headers, &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{deleted}");
    assert_eq!(archives(&api, &key).await[0]["deletedBy"], "ana@example.com");
}

#[tokio::test]
async fn entries_can_be_restored_to_several_pages_and_archived_with_each() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let archive = archived(&api, &key, json!({})).await;
    for slug in ["one", "two"] {
        let page = page(&api, &key, json!({"slug": slug})).await;
        let (status, response) = restore(&api, &key, &page, &archive).await;
        assert_eq!((status, &response["entriesRestored"]), (StatusCode::OK, &json!(2)), "{response}");
        api.send(Method::DELETE, &page, Some(&key), &Value::Null).await;
    }
    let counts: Vec<Value> = archives(&api, &key).await.iter().map(|one| one["entryCount"].clone()).collect();
    assert_eq!(counts, [json!(2), json!(2), json!(2)]);
}

#[tokio::test]
async fn a_restore_beyond_the_limit_restores_nothing() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let archive = archived(&api, &key, json!({})).await;
    let page = page(&api, &key, json!({"entryTemplate": null})).await;
    let fill = |count: i32| {
        format!(
            "delete from page_entries;
             insert into page_entries (id, account_id, page_id, data, created_at)
             select gen_random_uuid(), account_id, id, '{{}}', now() from pages, generate_series(1, {count});
             update pages set entry_count = {count}"
        )
    };
    api.execute(&fill(499)).await.unwrap();
    let (status, problem) = restore(&api, &key, &page, &archive).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
    let (_, read) = api.send(Method::GET, &page, Some(&key), &Value::Null).await;
    assert_eq!((read["entries"].as_array().unwrap().len(), &read["entryTemplate"]), (499, &Value::Null));
    api.execute(&fill(498)).await.unwrap();
    let (status, response) = restore(&api, &key, &page, &archive).await;
    assert_eq!((status, &response["totalEntries"]), (StatusCode::OK, &json!(500)));
}

#[tokio::test]
async fn an_archive_is_accessible_to_keys_that_could_access_its_page() {
    let api = Api::start(&[]).await;
    let (key, account_id) = api.trial_on(Plan::Scale).await;
    let (_, folder) = api.send(Method::POST, "/api/folders", Some(&key), &json!({"name": "F"})).await;
    let inside = archived(&api, &key, json!({"slug": "inside", "folderId": folder["id"]})).await;
    let outside = archived(&api, &key, json!({"slug": "outside"})).await;
    let target = page(&api, &key, json!({"slug": "target", "folderId": folder["id"]})).await;
    let listed = [outside["pageId"].clone(), json!(target.rsplit('/').next().unwrap())]
        .map(|id| id.as_str().unwrap().parse().unwrap());
    let of_folder = Restrictions {
        folder_id: Some(folder["id"].as_str().unwrap().parse().unwrap()),
        ..Restrictions::default()
    };
    let of_list = Restrictions { ids: [(Resource::Pages, listed.into())].into(), ..Restrictions::default() };
    for (restrictions, own, other, code) in [
        (of_folder, &inside, &outside, "folder_forbidden"),
        (of_list, &outside, &inside, "insufficient_scope"),
    ] {
        let (_, restricted) = api.insert_key(account_id, ScopeSet::FULL, restrictions, None).await;
        assert_eq!(archives(&api, &restricted).await, std::slice::from_ref(own));
        assert_eq!(restore(&api, &restricted, &target, own).await.0, StatusCode::OK);
        let (status, problem) = restore(&api, &restricted, &target, other).await;
        assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!(code)));
    }
    let other_key = api.trial().await;
    let other_page = page(&api, &other_key, json!({})).await;
    assert_eq!(archives(&api, &other_key).await, Vec::<Value>::new());
    assert_eq!(restore(&api, &other_key, &other_page, &inside).await.0, StatusCode::NOT_FOUND);
    let (status, problem) = restore(&api, &key, &target, &json!({"id": "x"})).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("archiveId")));
}

#[tokio::test]
async fn restoring_a_template_requires_pages_update() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let archive = archived(&api, &key, json!({})).await;
    let (bare, full) = (
        page(&api, &key, json!({"slug": "bare", "entryTemplate": null})).await,
        page(&api, &key, json!({"slug": "full", "entryTemplate": "own"})).await,
    );
    let adds = api.key_with(&key, ScopeSet::parse(["entries:create"]).unwrap()).await;
    let (status, problem) = restore(&api, &adds, &bare, &archive).await;
    assert_eq!((status, &problem["requiredScope"]), (StatusCode::FORBIDDEN, &json!("pages:update")));
    let (_, read) = api.send(Method::GET, &bare, Some(&key), &Value::Null).await;
    assert_eq!((&read["entries"], &read["entryTemplate"]), (&json!([]), &Value::Null));
    let (status, response) = restore(&api, &adds, &full, &archive).await;
    assert_eq!((status, &response["templateRestored"]), (StatusCode::OK, &json!(false)), "{response}");
    let both = api.key_with(&key, ScopeSet::parse(["entries:create", "pages:update"]).unwrap()).await;
    assert_eq!(restore(&api, &both, &bare, &archive).await.0, StatusCode::OK);
}
