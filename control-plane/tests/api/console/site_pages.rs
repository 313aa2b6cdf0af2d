//! The pages of a site: an editor, versions and entries.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::sites::{HOSTILE, Owner};
use crate::harness::Api;

#[tokio::test]
async fn a_page_is_made_edited_compared_restored_and_deleted() {
    let api = Api::start(&[]).await;
    let ada = Owner::sign_in(&api).await;
    ada.get("/pages").await.contains("No page yet");
    ada.get("/pages/new").await.contains("&lt;!doctype html&gt;");
    let form = [("slug", "about"), ("title", HOSTILE), ("html", "<p>one\r\n<p>two\r\n"), ("visible", "yes")];
    let made = ada.post("/pages", &form).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.html);
    let page = made.header("location").strip_prefix(&ada.root).unwrap().to_owned();
    let id = page.rsplit('/').next().unwrap().to_owned();
    ada.get("/pages").await.contains("&lt;script&gt;alert(1)").contains("Published").contains("/about");
    ada.get("/pages?slug=nothing").await.contains("No page matches");

    let shown = ada.get(&page).await;
    shown.contains("&lt;p&gt;one").contains("Versions");
    let updated_at = shown.hidden("updated_at");
    let html = "<p>one\r\n<p>three & more\r\n";
    let edit =
        [("title", "About"), ("html", html), ("css", "p{}"), ("visible", "no"), ("updated_at", &updated_at)];
    let saved = ada.post(&page, &edit).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.html);
    let read = ada.call(Method::GET, &format!("/api/pages/{id}"), Value::Null).await;
    let expected = json!(["About", "<p>one\n<p>three & more\n", "p{}", false]);
    assert_eq!(json!([read["title"], read["html"], read["css"], read["isPublished"]]), expected);

    // A form that was made before the edit.
    let mine = [("title", "Mine"), ("html", "<p>mine"), ("visible", "yes"), ("updated_at", &updated_at)];
    let stale = ada.post(&page, &mine).await;
    assert_eq!(stale.status, StatusCode::CONFLICT);
    stale
        .contains("The page was changed meanwhile")
        .contains("&lt;p&gt;mine</textarea>")
        .contains("<ins><span class=\"hush\">Added: </span><code>&lt;p&gt;mine</code></ins>")
        .contains("&lt;p&gt;three &amp; more");
    let newer = stale.hidden("updated_at");
    assert_ne!(newer, updated_at);
    let again = [("title", "Mine"), ("html", "<p>mine"), ("visible", "yes"), ("updated_at", &newer)];
    assert_eq!(ada.post(&page, &again).await.status, StatusCode::SEE_OTHER);

    let versions = ada.call(Method::GET, &format!("/api/pages/{id}/versions"), Value::Null).await;
    let oldest = versions["versions"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    let compared = ada.get(&format!("{page}/versions/{oldest}")).await;
    compared.contains("Version 1").contains("<del>").contains("&lt;p&gt;two").contains("Title");
    let restored = ada.post(&format!("{page}/versions/{oldest}/restore"), &[]).await;
    assert_eq!(restored.status, StatusCode::SEE_OTHER, "{}", restored.html);
    let read = ada.call(Method::GET, &format!("/api/pages/{id}"), Value::Null).await;
    assert_eq!(read["html"], "<p>one\n<p>two\n");

    ada.get(&format!("{page}?delete=yes")).await.contains("Delete it");
    let deleted = ada.post(&format!("{page}/delete"), &[]).await;
    assert_eq!(
        (deleted.status, deleted.header("location")),
        (StatusCode::SEE_OTHER, &*format!("{}/pages", ada.root))
    );
    assert_eq!(ada.get(&page).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_refused_page_keeps_its_values_and_names_its_fields() {
    let api = Api::start(&[]).await;
    let ada = Owner::sign_in(&api).await;
    let form = [
        ("slug", "No Slug"),
        ("title", ""),
        ("html", "<p>kept"),
        ("visible", "later"),
        ("publish_at", "soon"),
    ];
    let refused = ada.post("/pages", &form).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.html);
    refused.contains("&lt;p&gt;kept</textarea>").contains("value=\"No Slug\"").contains("role=\"alert\"");
    let form = [
        ("slug", "later"),
        ("title", "T"),
        ("html", "x"),
        ("visible", "later"),
        ("publish_at", "2099-01-01T09:00"),
    ];
    let made = ada.post("/pages", &form).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.html);
    ada.get("/pages").await.contains("Scheduled").contains("1 Jan 2099");
    let page = made.header("location").strip_prefix(&ada.root).unwrap().to_owned();
    ada.get(&page).await.contains("value=\"2099-01-01T09:00\"").contains("value=\"later\" checked");
    let unnamed = ada.post(&page, &[("title", ""), ("html", "kept"), ("visible", "no")]).await;
    assert_eq!(unnamed.status, StatusCode::BAD_REQUEST);
    unnamed.contains("href=\"#field-title\"").contains("kept</textarea>");
}

#[tokio::test]
async fn entries_are_shown_deleted_and_restored_to_another_page() {
    let api = Api::start(&[]).await;
    let ada = Owner::sign_in(&api).await;
    let body = json!({ "slug": "guests", "title": "Guests", "html": "<!-- service:entries -->", "entryTemplate": "{{name}}" });
    let guests = ada.call(Method::POST, "/api/pages", body.clone()).await["id"].as_str().unwrap().to_owned();
    for name in ["Mary", HOSTILE] {
        let entry = json!({ "data": { "name": name } });
        ada.call(Method::POST, &format!("/api/pages/{guests}/entries"), entry).await;
    }
    let page = format!("/pages/{guests}");
    ada.get(&page).await.contains("Mary").contains("&lt;script&gt;alert(1)");
    let entries = ada.call(Method::GET, &format!("/api/pages/{guests}/entries"), Value::Null).await;
    let entry = entries["entries"][0]["id"].as_str().unwrap();
    let deleted = ada.post(&format!("{page}/entries/{entry}/delete"), &[]).await;
    assert_eq!(deleted.status, StatusCode::SEE_OTHER, "{}", deleted.html);
    assert!(!ada.get(&page).await.html.contains("&lt;script&gt;alert(1)"));
    let twice = ada.post(&format!("{page}/entries/{entry}/delete"), &[]).await;
    assert_eq!(twice.status, StatusCode::NOT_FOUND);

    ada.post(&format!("{page}/delete"), &[]).await;
    ada.get("/pages").await.contains("Entries of deleted pages").contains("/guests");
    let mut other = body;
    other["slug"] = json!("new-guests");
    let other = ada.call(Method::POST, "/api/pages", other).await["id"].as_str().unwrap().to_owned();
    let archives = ada.call(Method::GET, "/api/pages/archives", Value::Null).await;
    let archive = archives["archives"][0]["id"].as_str().unwrap();
    let page = format!("/pages/{other}");
    ada.get(&page).await.contains(&format!("<option value=\"{archive}\">"));
    let restored = ada.post(&format!("{page}/restore-entries"), &[("archive", archive)]).await;
    assert_eq!(restored.status, StatusCode::SEE_OTHER, "{}", restored.html);
    ada.get(&page).await.contains("Mary");
}
