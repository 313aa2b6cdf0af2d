//! Sites with their deploys and domains, and what belongs to another account.

use std::io::{Cursor, Write};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::visitor::{PageResponse, Visitor};
use crate::harness::Api;

/// What a stranger may write.
pub(super) const HOSTILE: &str = "<script>alert(1)</script>\u{202e}";

fn zip_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A person with a site.
pub(super) struct Owner<'a> {
    api: &'a Api,
    person: Visitor<'a>,
    account: String,
    site_id: String,
    pub(super) root: String,
}

impl<'a> Owner<'a> {
    pub(super) async fn sign_in(api: &'a Api) -> Self {
        let person = Visitor::sign_in(api).await;
        let (_, site) =
            api.send(Method::GET, "/api/account/subdomain", Some(&person.key), &Value::Null).await;
        let site_id = site["id"].as_str().unwrap().to_owned();
        let root = format!("/console/sites/{site_id}");
        Self { api, account: person.account_id.to_string(), person, site_id, root }
    }

    pub(super) async fn get(&self, path: &str) -> PageResponse {
        self.person.get(&format!("{}{path}", self.root)).await
    }

    pub(super) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> PageResponse {
        let fields = [&[("account", self.account.as_str())], fields].concat();
        self.person.post(&format!("{}{path}", self.root), &fields).await
    }

    pub(super) async fn call(&self, method: Method, path: &str, body: Value) -> Value {
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
