//! The pages of sites, their deploys, pages and domains.

use std::io::{Cursor, Write};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::visitor::{PageResponse, Visitor};
use crate::harness::Api;

/// What a stranger may write.
const HOSTILE: &str = "<script>alert(1)</script>\u{202e}";

fn zip_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A person with a site.
struct Owner<'a> {
    api: &'a Api,
    person: Visitor<'a>,
    account: String,
    site_id: String,
    root: String,
}

impl<'a> Owner<'a> {
    async fn sign_in(api: &'a Api) -> Self {
        let person = Visitor::sign_in(api).await;
        let (_, site) =
            api.send(Method::GET, "/api/account/subdomain", Some(&person.key), &Value::Null).await;
        let site_id = site["id"].as_str().unwrap().to_owned();
        let root = format!("/console/sites/{site_id}");
        Self { api, account: person.account_id.to_string(), person, site_id, root }
    }

    async fn get(&self, path: &str) -> PageResponse {
        self.person.get(&format!("{}{path}", self.root)).await
    }

    async fn post(&self, path: &str, fields: &[(&str, &str)]) -> PageResponse {
        let fields = [&[("account", self.account.as_str())], fields].concat();
        self.person.post(&format!("{}{path}", self.root), &fields).await
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, answer) = self.api.send(method, path, Some(&self.person.key), &body).await;
        assert!(status.is_success(), "{path}: {answer}");
        answer
    }

    async fn make_page(&self, slug: &str, html: &str) -> String {
        let page = json!({ "slug": slug, "title": "A title", "html": html });
        self.call(Method::POST, "/api/pages", page).await["id"].as_str().unwrap().to_owned()
    }

    /// Posts a zip as a browser without scripts does.
    async fn upload(&self, fields: &[(&str, &str)], zip: &[u8]) -> PageResponse {
        let mut body = Vec::new();
        for (name, value) in fields {
            let part = format!("--x\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
            body.extend_from_slice(part.as_bytes());
        }
        body.extend_from_slice(
            b"--x\r\ncontent-disposition: form-data; name=\"zip\"; filename=\"s.zip\"\r\ncontent-type: application/zip\r\n\r\n",
        );
        body.extend_from_slice(zip);
        body.extend_from_slice(b"\r\n--x--\r\n");
        let kind = "multipart/form-data; boundary=x";
        self.person.post_bytes(&format!("{}/deploys", self.root), kind, body).await
    }
}

#[tokio::test]
async fn sites_are_listed_and_made() {
    let api = Api::start(&[]).await;
    let ada = Owner::sign_in(&api).await;
    let list = ada.person.get("/console/sites").await;
    list.contains("Publish something").contains(&ada.root).contains("None");
    let made = ada.person.post("/console/sites", &[("account", &ada.account), ("name", "second-one")]).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.html);
    assert!(made.header("location").starts_with("/console/sites/"));
    ada.person.get("/console/sites").await.contains("second-one");
    let refused = ada.person.post("/console/sites", &[("account", &ada.account), ("name", HOSTILE)]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    refused.contains("href=\"#field-name\"").contains("&lt;script&gt;");
    assert!(!refused.html.contains("<script>alert"));
}

#[tokio::test]
async fn a_zip_is_uploaded_compared_published_and_rolled_back() {
    let api = Api::start(&[]).await;
    let ada = Owner::sign_in(&api).await;
    ada.get("").await.contains("Nothing was deployed").contains("multipart/form-data");
    ada.make_page("old", "by hand").await;
    let fields = [("account", ada.account.as_str()), ("idempotency_key", "k1"), ("message", HOSTILE)];
    let zip = zip_of(&[("index.html", "<img src=gone.png>"), ("a.js", "1")]);
    let planned = ada.upload(&fields, &zip).await;
    assert_eq!(planned.status, StatusCode::OK, "{}", planned.html);
    planned
        .contains("What publishing would do")
        .contains("<b>1</b> new")
        .contains("<b>1</b> stale")
        .contains("gone.png")
        .contains("&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩");
    let list = ada.call(Method::GET, "/api/deploy", Value::Null).await;
    let deploys = list["deploys"].as_array().unwrap();
    assert_eq!((deploys.len(), &deploys[0]["status"]), (1, &json!("uploaded")), "{list}");
    let deploy = format!("/deploys/{}", deploys[0]["deployId"].as_str().unwrap());

    let again = ada.upload(&fields, &zip).await;
    again.contains("What publishing would do");
    let list = ada.call(Method::GET, "/api/deploy", Value::Null).await;
    assert_eq!(list["deploys"].as_array().unwrap().len(), 1, "the same form makes no second deploy");
    ada.get("").await.contains("Uploaded, not published");
    ada.get(&deploy).await.contains("See what would change");

    let published = ada.post(&format!("{deploy}/publish"), &[("idempotency_key", "k2")]).await;
    assert_eq!(published.status, StatusCode::OK, "{}", published.html);
    published.contains("<h2 id=\"result\">Published</h2>").contains("Live").contains("Roll back");
    ada.get("").await.contains("+1 ~0 pages").contains("Live");
    ada.person.get("/console/sites").await.contains(&deploy);
    let refused = ada.post(&format!("{deploy}/plan"), &[]).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    refused.contains("already processed");
    let back = ada.post(&format!("{deploy}/rollback"), &[]).await;
    assert_eq!(back.status, StatusCode::SEE_OTHER, "{}", back.html);
    ada.get(&deploy).await.contains("It was rolled back");
    let second = ada.post(&format!("{deploy}/rollback"), &[]).await;
    assert_eq!(second.status, StatusCode::CONFLICT);
    second.contains("role=\"alert\"");
}

#[tokio::test]
async fn an_upload_becomes_a_preview_or_is_deleted() {
    let api = Api::start(&[]).await;
    let ada = Owner::sign_in(&api).await;
    let upload = async |key: &str| {
        let fields = [("account", ada.account.as_str()), ("idempotency_key", key)];
        let page = ada.upload(&fields, &zip_of(&[("index.html", "x")])).await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.html);
        let list = ada.call(Method::GET, "/api/deploy", Value::Null).await;
        format!("/deploys/{}", list["deploys"][0]["deployId"].as_str().unwrap())
    };
    let deploy = upload("a").await;
    let preview = ada.post(&format!("{deploy}/preview"), &[]).await;
    preview.contains("The preview is there").contains("Open the preview");
    let published = ada.post(&format!("{deploy}/publish"), &[]).await;
    assert_eq!(published.status, StatusCode::OK, "{}", published.html);
    published.contains("Published").contains("Live");
    let other = upload("b").await;
    let deleted = ada.post(&format!("{other}/delete"), &[]).await;
    assert_eq!((deleted.status, deleted.header("location")), (StatusCode::SEE_OTHER, ada.root.as_str()));
    assert_eq!(ada.get(&other).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_refused_upload_says_why_and_creates_nothing() {
    let api = Api::start(&[]).await;
    let ada = Owner::sign_in(&api).await;
    let account = ada.account.as_str();
    let zip = zip_of(&[("index.html", "x")]);
    let long = "x".repeat(201);
    let refused = ada.upload(&[("account", account), ("message", &long)], &zip).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.html);
    refused.contains("href=\"#field-message\"").contains(&long);
    for (fields, zip, status) in [
        (&[("account", account)][..], &b""[..], StatusCode::BAD_REQUEST),
        (&[("account", ada.site_id.as_str())][..], &zip[..], StatusCode::CONFLICT),
        (&[][..], &zip[..], StatusCode::CONFLICT),
    ] {
        let refused = ada.upload(fields, zip).await;
        assert_eq!(refused.status, status, "{}", refused.html);
    }
    let form = ada.post("/deploys", &[]).await;
    assert_eq!(form.status, StatusCode::BAD_REQUEST, "a form without a file");
    let list = ada.call(Method::GET, "/api/deploy", Value::Null).await;
    assert_eq!(list["deploys"], json!([]));

    let no_zip = ada.upload(&[("account", account), ("idempotency_key", "k")], b"GIF89a is no zip").await;
    assert_eq!(no_zip.status, StatusCode::BAD_REQUEST);
    no_zip.contains("role=\"alert\"");
    let no_html = ada.upload(&[("account", account)], &zip_of(&[("a.txt", "x")])).await;
    assert_eq!(no_html.status, StatusCode::BAD_REQUEST);
    no_html.contains("Not published").contains("role=\"alert\"");
}

#[tokio::test]
async fn the_script_begins_an_upload_and_gets_its_address() {
    let api = Api::start(&[]).await;
    let ada = Owner::sign_in(&api).await;
    let begun =
        ada.post("/deploys/begin", &[("sizeBytes", "9"), ("message", "m"), ("idempotency_key", "k")]).await;
    assert_eq!(begun.status, StatusCode::CREATED, "{}", begun.html);
    let body: Value = serde_json::from_str(&begun.html).unwrap();
    assert!(body["uploadUrl"].as_str().unwrap().contains("/uploads/"), "{body}");
    assert!(body["next"].as_str().unwrap().starts_with(&format!("{}/deploys/", ada.root)), "{body}");
    let refused = ada.post("/deploys/begin", &[("sizeBytes", "0")]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
}

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

#[tokio::test]
async fn a_domain_shows_what_its_dns_needs_and_is_removed() {
    let api = Api::start(&[]).await;
    let ada = Owner::sign_in(&api).await;
    ada.get("/domains").await.contains("No domain of your own yet");
    let refused = ada.post("/domains", &[("domain", "no domain")]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    refused.contains("href=\"#field-domain\"").contains("value=\"no domain\"");
    let added = ada.post("/domains", &[("domain", "www.society.example")]).await;
    assert_eq!(added.status, StatusCode::SEE_OTHER, "{}", added.html);
    let shown = ada.get("/domains").await;
    shown
        .contains("www.society.example")
        .contains("_webruntime.www.society.example")
        .contains("Not looked up yet")
        .contains("data-copy=\"#record-1-1-value\"");
    let list = ada.call(Method::GET, "/api/account/domains", Value::Null).await;
    let id = list["domains"][0]["id"].as_str().unwrap();
    let checked = ada.post(&format!("/domains/{id}/check"), &[]).await;
    assert_eq!(checked.status, StatusCode::SEE_OTHER, "{}", checked.html);
    let shown = ada.get("/domains").await;
    shown
        .contains("Looked up")
        .contains("Missing")
        .contains("enter _webruntime.www if yours is society.example");
    ada.person.get("/console/sites").await.contains("www.society.example");
    ada.get(&format!("/domains?remove={id}")).await.contains("Remove it");
    let removed = ada.post(&format!("/domains/{id}/remove"), &[]).await;
    assert_eq!(removed.status, StatusCode::SEE_OTHER, "{}", removed.html);
    ada.get("/domains").await.contains("No domain of your own yet");
    assert_eq!(ada.post(&format!("/domains/{id}/check"), &[]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn another_accounts_site_page_deploy_and_domain_are_not_found() {
    let api = Api::start(&[]).await;
    let (ada, grace) = (Owner::sign_in(&api).await, Owner::sign_in(&api).await);
    let page = grace.make_page("index", "secret text").await;
    let fields = [("account", grace.account.as_str())];
    grace.upload(&fields, &zip_of(&[("index.html", "x")])).await;
    let list = grace.call(Method::GET, "/api/deploy", Value::Null).await;
    let deploy = list["deploys"][0]["deployId"].as_str().unwrap();
    grace.post("/domains", &[("domain", "www.grace.example")]).await;
    let domains = grace.call(Method::GET, "/api/account/domains", Value::Null).await;
    let domain = domains["domains"][0]["id"].as_str().unwrap();
    for path in ["", "/pages", "/pages/new", "/domains"] {
        let refused = ada.person.get(&format!("{}{path}", grace.root)).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{path}");
        assert!(!refused.html.contains("www.grace.example"), "{path}");
    }
    for path in
        [format!("/pages/{page}"), format!("/pages/{page}/versions/{page}"), format!("/deploys/{deploy}")]
    {
        let refused = ada.get(&path).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{path}");
        assert!(!refused.html.contains("secret text"), "{path}");
    }
    for path in [
        format!("/pages/{page}"),
        format!("/pages/{page}/delete"),
        format!("/pages/{page}/versions/{page}/restore"),
        format!("/pages/{page}/entries/{page}/delete"),
        format!("/deploys/{deploy}/plan"),
        format!("/deploys/{deploy}/publish"),
        format!("/deploys/{deploy}/delete"),
        format!("/deploys/{deploy}/rollback"),
        format!("/domains/{domain}/check"),
        format!("/domains/{domain}/remove"),
    ] {
        let refused = ada.post(&path, &[("title", "T"), ("html", "x"), ("visible", "yes")]).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{path}: {}", refused.html);
    }
    // A page of her own account, made for another one.
    let foreign = [("account", ada.account.as_str()), ("title", "T"), ("html", "x")];
    let refused = grace.person.post(&format!("{}/pages/{page}", grace.root), &foreign).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let read = grace.call(Method::GET, &format!("/api/pages/{page}"), Value::Null).await;
    assert_eq!(read["html"], "secret text");
}
