//! Folders: counts, independent moves, and deletion without their resources.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

struct Fixture {
    api: Api,
    key: String,
}

impl Fixture {
    async fn setup() -> Self {
        let api = Api::start(&[]).await;
        let (key, _) = api.trial_on(Plan::Scale).await;
        Self { api, key }
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, response) = self.api.send(method, path, Some(&self.key), &body).await;
        assert!(status.is_success(), "{path}: {status} {response}");
        response
    }

    async fn create(&self, path: &str, body: Value) -> String {
        let response = self.call(Method::POST, path, body).await;
        let id = [&response["formId"], &response["site"]["id"], &response["id"]]
            .into_iter()
            .find_map(Value::as_str);
        id.unwrap().to_owned()
    }

    async fn get(&self, path: &str) -> Value {
        self.call(Method::GET, path, Value::Null).await
    }

    /// Creates a folder, and one resource of each kind outside of it.
    async fn resources(&self) -> (String, [(&'static str, String); 3]) {
        let fields = json!([{"name": "a", "label": "A", "type": "text"}]);
        let page = self.create("/api/pages", json!({"slug": "index", "title": "P", "html": "x"})).await;
        let form = self.create("/api/forms", json!({"name": "F", "fields": fields})).await;
        let site = self.create("/api/analytics/sites", json!({"name": "S"})).await;
        let folder = self.create("/api/folders", json!({"name": "Folder"})).await;
        (folder, [("page", page), ("form", form), ("analytics", site)])
    }
}

fn moves(resources: &[(&str, String)]) -> Value {
    let one = |(kind, id): &(&str, String)| json!({"type": kind, "id": id});
    json!({"resources": resources.iter().map(one).collect::<Vec<_>>()})
}

fn statuses(moved: &Value) -> Vec<&str> {
    moved["results"].as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn resources_are_moved_in_and_out_independently() {
    let fixture = Fixture::setup().await;
    let (folder, resources) = fixture.resources().await;
    let path = format!("/api/folders/{folder}");
    let nothing = "00000000-0000-0000-0000-000000000000".to_owned();
    let mut requested = resources.to_vec();
    requested.insert(1, ("page", nothing));
    // The kinds do not match the page.
    requested.push(("form", resources[0].1.clone()));
    requested.push(("automation", resources[0].1.clone()));
    let moved = fixture.call(Method::POST, &format!("{path}/organize"), moves(&requested)).await;
    assert_eq!(statuses(&moved), ["moved", "error", "moved", "moved", "error", "error"]);
    assert_eq!((&moved["moved"], &moved["failed"]), (&json!(3), &json!(3)));
    assert_eq!(moved["results"][1]["index"], 1);
    assert!(moved["results"][1]["error"].as_str().unwrap().contains("no such page"));

    let folder_with_resources = fixture.get(&format!("{path}?include=resources")).await;
    assert_eq!(
        folder_with_resources["counts"],
        json!({"forms": 1, "pages": 1, "analytics": 1, "automations": 0, "total": 3})
    );
    let kinds: Vec<&str> = folder_with_resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["page", "form", "analytics"], "oldest first");
    assert_eq!(fixture.get("/api/folders").await["folders"][0]["counts"], folder_with_resources["counts"]);
    assert!(fixture.get(&path).await.get("resources").is_none(), "only on request");
    for (list, noun) in [("/api/pages", "pages"), ("/api/forms", "forms"), ("/api/analytics/sites", "sites")]
    {
        if noun != "sites" {
            let listed = fixture.get(&format!("{list}?folderId={folder}")).await;
            assert_eq!(listed[noun].as_array().unwrap().len(), 1, "{list}");
        }
    }

    let moved = fixture.call(Method::POST, &format!("{path}/ungroup"), moves(&resources[..1])).await;
    assert_eq!(statuses(&moved), ["moved"]);
    let moved = fixture.call(Method::POST, &format!("{path}/ungroup"), moves(&resources[..2])).await;
    assert_eq!(statuses(&moved), ["error", "moved"], "a resource outside the folder can't be taken out");
    assert_eq!(fixture.get(&path).await["counts"]["total"], 1);
}

#[tokio::test]
async fn ungrouping_from_the_wrong_folder_moves_nothing() {
    let fixture = Fixture::setup().await;
    let (folder, resources) = fixture.resources().await;
    let other = fixture.create("/api/folders", json!({"name": "Other"})).await;
    fixture.call(Method::POST, &format!("/api/folders/{folder}/organize"), moves(&resources)).await;
    let moved = fixture.call(Method::POST, &format!("/api/folders/{other}/ungroup"), moves(&resources)).await;
    assert_eq!(statuses(&moved), ["error", "error", "error"]);
    assert_eq!(fixture.get(&format!("/api/folders/{folder}")).await["counts"]["total"], 3);
    let moved =
        fixture.call(Method::POST, &format!("/api/folders/{other}/organize"), moves(&resources)).await;
    assert_eq!(moved["moved"], 3, "directly from one folder into another");
    assert_eq!(fixture.get(&format!("/api/folders/{folder}")).await["counts"]["total"], 0);
}

#[tokio::test]
async fn deleting_a_folder_keeps_its_resources_and_revokes_its_keys() {
    let fixture = Fixture::setup().await;
    let (folder, resources) = fixture.resources().await;
    fixture.call(Method::POST, &format!("/api/folders/{folder}/organize"), moves(&resources)).await;
    let created = fixture.call(Method::POST, "/api/keys", json!({"label": "K", "folderId": folder})).await;
    let key = created["key"].as_str().unwrap();
    let child = fixture.api.send(Method::POST, "/api/keys", Some(key), &json!({"label": "child"})).await.1;
    let child = child["key"].as_str().unwrap();
    let path = format!("/api/folders/{folder}");
    for key in [key, child] {
        assert_eq!(fixture.api.send(Method::GET, &path, Some(key), &Value::Null).await.0, StatusCode::OK);
    }
    fixture.call(Method::DELETE, &path, Value::Null).await;
    for key in [key, child] {
        let (status, _) = fixture.api.send(Method::GET, "/api/pages", Some(key), &Value::Null).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "the key must not lose its restriction");
    }
    assert_eq!(fixture.get("/api/folders").await["folders"], json!([]));
    let (page, form) = (&resources[0].1, &resources[1].1);
    assert_eq!(fixture.get(&format!("/api/pages/{page}")).await["folderId"], Value::Null);
    assert_eq!(fixture.get(&format!("/api/forms/{form}")).await["folderId"], Value::Null);
    assert_eq!(
        fixture.api.send(Method::GET, &path, Some(&fixture.key), &Value::Null).await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_moves_in_opposite_orders_do_not_deadlock() {
    let fixture = std::sync::Arc::new(Fixture::setup().await);
    let (folder, _) = fixture.resources().await;
    let mut resources = Vec::new();
    for at in 0..30 {
        let page = json!({"slug": format!("page-{at}"), "title": "T", "html": "x"});
        resources.push(("page", fixture.create("/api/pages", page).await));
    }
    let mut moving = tokio::task::JoinSet::new();
    for _ in 0..20 {
        resources.reverse();
        let (fixture, path, body) =
            (std::sync::Arc::clone(&fixture), format!("/api/folders/{folder}/organize"), moves(&resources));
        moving.spawn(async move { fixture.api.send(Method::POST, &path, Some(&fixture.key), &body).await });
    }
    for (status, moved) in moving.join_all().await {
        assert_eq!((status, &moved["moved"]), (StatusCode::OK, &json!(30)), "{moved}");
    }
}
