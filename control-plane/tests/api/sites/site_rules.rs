//! The `_redirects`, `_headers` and fallback of a deployed site.

use domain::plans::Plan;
use http::StatusCode;
use serde_json::json;

use super::owner::{Owner, zip_of};

impl Owner {
    /// Checks an SQL condition on the rules of the served deploy.
    async fn check_rules(&self, condition: &str) {
        let statement = format!(
            "do $$ declare rules jsonb; begin
               select d.rules into rules from served_deploys s join deploys d on d.id = s.deploy_id;
               if ({condition}) is not true then raise '%', rules; end if;
             end $$"
        );
        self.api.execute(&statement).await.unwrap();
    }
}

#[tokio::test]
async fn redirects_and_headers_are_stored_with_the_deploy_and_never_served() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let first = owner.deploy(&[("index.html", b"x")]).await;
    assert_eq!(first["notes"], json!([]));
    owner.check_rules("rules is null").await;
    let second = owner
        .deploy(&[
            ("dist/index.html", b"x"),
            ("dist/_redirects", b"/old /new 302\n/bad\n/x https://other.test/ 200\n"),
            ("dist/_headers", b"/*\n  X-Frame-Options: DENY\n  Set-Cookie: a=b\n"),
        ])
        .await;
    let notes = second["notes"].as_array().unwrap();
    let lines: Vec<_> =
        notes.iter().map(|note| (note["file"].as_str().unwrap(), note["line"].as_u64().unwrap())).collect();
    assert_eq!(lines, [("_redirects", 2), ("_redirects", 3), ("_headers", 3)]);
    let listed = json!([
        {"path": "_headers", "reason": "configuration"},
        {"path": "_redirects", "reason": "configuration"}
    ]);
    assert_eq!(second["files"], listed);
    for name in ["_redirects", "_headers"] {
        assert_eq!(owner.file(name).await, None, "{name}");
    }
    owner.check_rules("jsonb_array_length(rules -> 'redirects') = 1").await;
    owner.check_rules("jsonb_array_length(rules -> 'headers') = 1").await;
    owner.check_rules("rules -> 'spa' = 'false'").await;

    owner.roll_back(&second).await;
    owner.check_rules("rules is null").await;
}

#[tokio::test]
async fn a_single_page_application_is_stored_as_one() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let id = owner.uploaded(&zip_of(&[("index.html", b"x")])).await;
    let (status, _) = owner.process_with(&id, json!({"spa": "yes"})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let (status, done) = owner.process_with(&id, json!({"spa": true})).await;
    assert_eq!(status, StatusCode::OK, "{done}");
    owner.check_rules("rules -> 'spa' = 'true'").await;
    owner.deploy(&[("index.html", b"x")]).await;
    owner.check_rules("rules is null").await;
}

#[tokio::test]
async fn a_file_of_rules_that_is_too_large_is_ignored_with_a_note() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let large = "/a /b\n".repeat(12_000);
    let done = owner.deploy(&[("index.html", b"x"), ("_redirects", large.as_bytes())]).await;
    assert!(done["notes"][0]["reason"].as_str().unwrap().contains("70.4 KB"), "{done}");
    owner.check_rules("rules is null").await;
}
