//! An account that deploys.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::harness::Api;

/// Returns a zip with these files.
pub(super) fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// An account with deploys.
pub(super) struct Owner {
    pub(super) api: Api,
    pub(super) key: String,
    pub(super) id: Uuid,
    pub(super) subdomain_id: Uuid,
    pub(super) site: String,
}

impl Owner {
    pub(super) async fn with_plan(plan: Plan) -> Self {
        Self::with_settings(plan, &[]).await
    }

    pub(super) async fn with_settings(plan: Plan, set: &[&str]) -> Self {
        let api = Api::start(&[&["keys.cache_ttl=0s"], set].concat()).await;
        let (key, id) = api.trial_on(plan).await;
        let (_, first) = api.send(Method::GET, "/api/account/subdomain", Some(&key), &Value::Null).await;
        let subdomain_id = first["id"].as_str().unwrap().parse().unwrap();
        let site = first["url"].as_str().unwrap().trim_end_matches('/').to_owned();
        Self { api, key, id, subdomain_id, site }
    }

    pub(super) async fn send(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        self.api.send(method, path, Some(&self.key), &body).await
    }

    /// Creates a key that is restricted to these ids by kind.
    pub(super) async fn restricted_key(&self, ids: Value) -> String {
        let (status, key) =
            self.send(Method::POST, "/api/keys", json!({"label": "k", "resourceIds": ids})).await;
        assert_eq!(status, StatusCode::CREATED, "{key}");
        key["key"].as_str().unwrap().to_owned()
    }

    /// Creates a deploy and uploads its zip.
    pub(super) async fn uploaded(&self, zip: &[u8]) -> String {
        self.uploaded_by(&self.key, zip).await
    }

    /// Creates a deploy by this key and uploads its zip.
    pub(super) async fn uploaded_by(&self, key: &str, zip: &[u8]) -> String {
        let body = json!({"sizeBytes": zip.len()});
        let (status, started) = self.api.send(Method::POST, "/api/deploy", Some(key), &body).await;
        assert_eq!(status, StatusCode::CREATED, "{started}");
        let id = started["deployId"].as_str().unwrap().to_owned();
        self.api.upload(self.id, id.parse().unwrap(), zip).await;
        id
    }

    pub(super) async fn process(&self, id: &str) -> (StatusCode, Value) {
        self.process_with(id, Value::Null).await
    }

    pub(super) async fn process_with(&self, id: &str, body: Value) -> (StatusCode, Value) {
        self.send(Method::POST, &format!("/api/deploy/{id}/process"), body).await
    }

    /// Deploys a preview and returns the response.
    pub(super) async fn preview(&self, files: &[(&str, &[u8])]) -> Value {
        let id = self.uploaded(&zip_of(files)).await;
        let (status, done) = self.process_with(&id, json!({"publish": false})).await;
        assert_eq!(status, StatusCode::CREATED, "{done}");
        done
    }

    /// Makes a preview live.
    pub(super) async fn publish(&self, preview: &Value) -> (StatusCode, Value) {
        let id = preview["deployId"].as_str().unwrap();
        self.send(Method::POST, &format!("/api/deploy/{id}/publish"), Value::Null).await
    }

    /// The state of a deploy.
    pub(super) async fn deploy_state(&self, deployed: &Value) -> Value {
        let id = deployed["deployId"].as_str().unwrap();
        self.send(Method::GET, &format!("/api/deploy/{id}"), Value::Null).await.1
    }

    pub(super) async fn roll_back(&self, deployed: &Value) {
        let id = deployed["deployId"].as_str().unwrap();
        let (status, rolled_back) =
            self.send(Method::POST, &format!("/api/deploy/{id}/rollback"), Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{rolled_back}");
    }

    /// The path of every page by slug, `None` for a page that is no file of the site.
    pub(super) async fn paths(&self) -> BTreeMap<String, Option<String>> {
        let mut tx = self.api.begin().await;
        let pages = store::deploys::undo::list_pages(&mut tx, self.id, self.subdomain_id).await.unwrap();
        pages.into_iter().map(|page| (page.slug, page.path)).collect()
    }

    pub(super) async fn deploy(&self, files: &[(&str, &[u8])]) -> Value {
        let id = self.uploaded(&zip_of(files)).await;
        let (status, done) = self.process(&id).await;
        assert_eq!(status, StatusCode::OK, "{done}");
        done
    }

    /// Every page by slug: its id and whether it is published.
    pub(super) async fn pages(&self) -> BTreeMap<String, (String, bool)> {
        let (_, listed) = self.send(Method::GET, "/api/pages?limit=100", Value::Null).await;
        let mut pages = BTreeMap::new();
        for page in listed["pages"].as_array().unwrap() {
            let path = format!("/api/pages/{}", page["id"].as_str().unwrap());
            let (_, whole) = self.send(Method::GET, &path, Value::Null).await;
            let html = whole["html"].as_str().unwrap().to_owned();
            pages.insert(page["slug"].as_str().unwrap().to_owned(), (html, page["isPublished"] == true));
        }
        pages
    }

    pub(super) async fn file(&self, path: &str) -> Option<String> {
        let (_, bytes) = self.api.site_file(self.subdomain_id, path).await?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) async fn stored_bytes(&self) -> i64 {
        let (_, usage) = self.send(Method::GET, "/api/account/usage", Value::Null).await;
        usage["_meta"]["usage"]["storageBytes"]["used"].as_i64().unwrap()
    }
}
