//! Deploys that announce their files and upload only what the account has not stored.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Body;
use domain::plans::Plan;
use http::{Method, Request, StatusCode};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use store::blobs::{delete_blob, lock_unreferenced};

use super::owner::{Owner, zip_of};

pub(super) type Files<'a> = [(&'a str, &'a [u8])];

pub(super) const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// A site with every kind of file: pages, rewritten and plain style sheets, images, rules, HTML without a page, and a secret.
pub(super) const SITE: &Files<'_> = &[
    ("_headers", b"/*\n  X-Frame-Options: DENY\n"),
    ("_redirects", b"/old /docs/ 301\n"),
    (".env", b"SECRET=1"),
    ("app.js", b"import('./chunk.js')"),
    ("docs/index.html", b"<a href=../>up</a><img src=../img/a.png>"),
    ("img/a.png", PNG),
    ("index.html", b"<title>Home</title><img src=img/a.png><link rel=stylesheet href=s/a.css>"),
    ("nul.html", b"<p>\0"),
    ("s/a.css", b"b{background:url(../img/a.png)}"),
    ("s/plain.css", b"b{color:red}"),
];

/// Returns the `files` of a request.
fn announced(files: &Files<'_>) -> Value {
    let file = |bytes: &[u8]| json!({"sha256": hex::encode(Sha256::digest(bytes)), "sizeBytes": bytes.len()});
    Value::Object(files.iter().map(|(path, bytes)| ((*path).to_owned(), file(bytes))).collect())
}

fn with<'a>(files: &Files<'a>, path: &'a str, bytes: &'a [u8]) -> Vec<(&'a str, &'a [u8])> {
    files.iter().copied().filter(|(other, _)| *other != path).chain([(path, bytes)]).collect()
}

pub(super) fn missing_of(response: &Value) -> Vec<String> {
    response["missing"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned()).collect()
}

impl Owner {
    /// Announces files; without a size, only asks what is missing.
    pub(super) async fn announce(&self, files: &Files<'_>, size_bytes: usize) -> (StatusCode, Value) {
        let body = json!({"sizeBytes": size_bytes, "files": announced(files)});
        self.send(Method::POST, "/api/deploy", body).await
    }

    /// Deploys announced files: uploads what is missing in a zip, as a client does. Returns the response and the missing paths.
    pub(super) async fn deploy_announced(&self, files: &Files<'_>) -> (Value, Vec<String>) {
        let (status, first) = self.announce(files, 0).await;
        let missing = missing_of(&first);
        let id = if missing.is_empty() {
            assert_eq!((status, &first["uploadUrl"]), (StatusCode::CREATED, &Value::Null), "{first}");
            first["deployId"].as_str().unwrap().to_owned()
        } else {
            assert_eq!((status, &first["deployId"]), (StatusCode::OK, &Value::Null), "{first}");
            let is_missing = |(path, _): &&(&str, &[u8])| missing.iter().any(|other| other == path);
            let changed: Vec<(&str, &[u8])> = files.iter().filter(is_missing).copied().collect();
            self.announced_and_uploaded(files, &zip_of(&changed)).await
        };
        let (status, done) = self.process(&id).await;
        assert_eq!(status, StatusCode::OK, "{done}");
        (done, missing)
    }

    /// Announces files and uploads this zip.
    pub(super) async fn announced_and_uploaded(&self, files: &Files<'_>, zip: &[u8]) -> String {
        let (status, started) = self.announce(files, zip.len()).await;
        assert_eq!(status, StatusCode::CREATED, "{started}");
        assert!(started["uploadUrl"].is_string() && started["expiresAt"].is_string(), "{started}");
        let id = started["deployId"].as_str().unwrap().to_owned();
        self.api.upload(self.id, id.parse().unwrap(), zip).await;
        id
    }

    /// Everything that the site serves: pages by slug, and files by path with their types.
    async fn served(
        &self,
        paths: &[&str],
    ) -> (BTreeMap<String, (String, bool)>, Vec<Option<(String, Vec<u8>)>>) {
        let mut files = Vec::new();
        for path in paths {
            files.push(self.api.site_file(self.subdomain_id, path).await);
        }
        (self.pages().await, files)
    }

    /// Returns how many rows a query counts.
    pub(super) async fn count(&self, what: &str, expected: usize) {
        let check = format!(
            "do $$ declare n bigint; begin select count(*) into n from {what};
             if n <> {expected} then raise '% rows, not {expected}', n; end if; end $$"
        );
        self.api.execute(&check).await.unwrap();
    }

    /// Deletes all bytes that nothing refers to, as the job-runner does. Returns their digests.
    pub(super) async fn sweep_blobs(&self) -> BTreeSet<[u8; 32]> {
        let mut deleted = BTreeSet::new();
        let later = service::Clock::system().now() + chrono::TimeDelta::days(1);
        let mut tx = self.api.begin().await;
        while let Some(blob) = lock_unreferenced(&mut tx, later).await.unwrap() {
            self.api.delete_bytes(blob.account_id, blob.sha256).await;
            delete_blob(&mut tx, blob.account_id, blob.id).await.unwrap();
            deleted.insert(blob.sha256);
        }
        store::commit(tx).await.unwrap();
        deleted
    }
}

#[tokio::test]
async fn an_announced_deploy_serves_the_same_as_a_full_zip() {
    let (owner, other) = (Owner::with_plan(Plan::Pro).await, Owner::with_plan(Plan::Pro).await);
    let paths: Vec<&str> = SITE.iter().map(|(path, _)| *path).collect();
    let compare = async |files: &Files<'_>, expected_missing: &[&str]| {
        let (done, missing) = owner.deploy_announced(files).await;
        assert_eq!(missing, expected_missing);
        let full = other.deploy(files).await;
        for field in ["assets", "errors", "files", "notes", "missingAssets", "stats"] {
            assert_eq!(done[field], full[field], "{field}");
        }
        assert_eq!(owner.served(&paths).await, other.served(&paths).await);
        assert_eq!(owner.stored_bytes().await, other.stored_bytes().await, "originals don't count");
    };
    let all_but_env: Vec<&str> = paths.iter().copied().filter(|path| *path != ".env").collect();
    compare(SITE, &all_but_env).await;
    compare(SITE, &[]).await;
    let changed = with(SITE, "docs/index.html", b"<img src=../img/a.png><img src=../none.png>");
    compare(&changed, &["docs/index.html"]).await;
    // A changed image changes the references in unchanged HTML and style sheets.
    let changed = with(&changed, "img/a.png", b"\x89PNG\r\n\x1a\n another");
    compare(&changed, &["img/a.png"]).await;
    let pages = owner.pages().await;
    let digest = hex::encode(Sha256::digest(b"\x89PNG\r\n\x1a\n another"));
    assert!(pages["index"].0.contains(&digest) && pages["docs"].0.contains(&digest), "{pages:?}");
    let fewer: Vec<(&str, &[u8])> = changed.into_iter().filter(|(path, _)| *path != "app.js").collect();
    compare(&fewer, &[]).await;
    compare(SITE, &["docs/index.html"]).await;
}

#[tokio::test]
async fn files_outside_the_root_are_missing_each_time_and_never_stored() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let site: &Files<'_> = &[
        ("web/dist/_redirects", b"/old / 301"),
        ("web/dist/img/a.png", PNG),
        ("web/dist/index.html", b"<img src=img/a.png>"),
        ("web/package.json", b"{}"),
        ("web/src/main.css", b"b{color:red}"),
    ];
    let outside = ["web/package.json", "web/src/main.css"];
    assert_eq!(owner.deploy_announced(site).await.1.len(), site.len());
    let (done, missing) = owner.deploy_announced(site).await;
    assert_eq!(missing, outside);
    assert_eq!(done["files"][1], json!({"path": outside[0], "reason": "outside_root"}), "{done}");
    assert_eq!(owner.file("img/a.png").await.unwrap(), String::from_utf8_lossy(PNG));
    let (_, missing) = owner.deploy_announced(&site[..3]).await;
    assert_eq!(missing, Vec::<String>::new());

    // The root is chosen after the announcement.
    let (_, started) = owner.announce(&site[..3], 0).await;
    let id = started["deployId"].as_str().unwrap();
    let (status, problem) = owner.process_with(id, json!({"root": "web/src"})).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("root")));
    let (status, done) = owner.process_with(id, json!({"root": "web"})).await;
    assert_eq!((status, &done["notes"]), (StatusCode::OK, &json!([])), "{done}");
    assert_eq!(owner.file("dist/img/a.png").await.unwrap(), String::from_utf8_lossy(PNG));
}

#[tokio::test]
async fn a_thousand_unchanged_files_upload_no_byte() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let files: Vec<(String, Vec<u8>)> =
        (0..999).map(|n| (format!("assets/{n}.js"), format!("let n = {n};").into_bytes())).collect();
    let mut site: Vec<(&str, &[u8])> =
        files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
    site.push(("index.html", b"<script src=assets/1.js></script>"));
    let (_, missing) = owner.deploy_announced(&site).await;
    assert_eq!(missing.len(), 1_000);
    let (done, missing) = owner.deploy_announced(&site).await;
    assert_eq!((missing.len(), &done["stats"]["filesServed"]), (0, &json!(1_000)), "{}", done["stats"]);
    owner.count("deploys where size_bytes = 0 and blob_id is null and status = 'processed'", 1).await;
    assert_eq!(owner.file("assets/998.js").await.unwrap(), "let n = 998;");
    // A file that a full zip had stored is known as well.
    owner.deploy(&with(&site, "new.js", b"new")).await;
    let (_, missing) = owner.deploy_announced(&with(&site, "new.js", b"new")).await;
    assert_eq!(missing, ["index.html"], "a full zip retains no originals");
}

#[tokio::test]
async fn a_hash_of_another_accounts_file_is_missing() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let (other_key, other_id) = owner.api.trial_on(Plan::Pro).await;
    owner.deploy_announced(SITE).await;
    let body = json!({"sizeBytes": 0, "files": announced(SITE)});
    let (status, asked) = owner.api.send(Method::POST, "/api/deploy", Some(&other_key), &body).await;
    let all: Vec<&str> = SITE.iter().map(|(path, _)| *path).filter(|path| *path != ".env").collect();
    assert_eq!((status, missing_of(&asked)), (StatusCode::OK, all.iter().map(ToString::to_string).collect()));

    // A zip without the bytes does not get them either.
    let zip = zip_of(&[("index.html", SITE[6].1)]);
    let body = json!({"sizeBytes": zip.len(), "files": announced(SITE)});
    let (_, started) = owner.api.send(Method::POST, "/api/deploy", Some(&other_key), &body).await;
    let id = started["deployId"].as_str().unwrap();
    owner.api.upload(other_id, id.parse().unwrap(), &zip).await;
    let path = format!("/api/deploy/{id}/process");
    let (status, problem) = owner.api.send(Method::POST, &path, Some(&other_key), &Value::Null).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("entry `_headers`"), "{problem}");
}

#[tokio::test]
async fn a_hash_of_an_asset_or_of_a_waiting_zip_is_missing() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let zip = zip_of(&[("index.html", b"x")]);
    owner.uploaded(&zip).await;
    let asset = json!({"filename": "a.png", "contentType": "image/png", "sizeBytes": PNG.len()});
    let (status, created) = owner.send(Method::POST, "/api/pages/assets", asset).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    owner.api.upload_asset(owner.id, created["id"].as_str().unwrap().parse().unwrap(), PNG).await;
    let files: &Files<'_> = &[("a.png", PNG), ("index.html", b"y"), ("site.zip", &zip)];
    let (_, asked) = owner.announce(files, 0).await;
    assert_eq!(missing_of(&asked), ["a.png", "index.html", "site.zip"]);
}

#[tokio::test]
async fn a_known_hash_with_another_size_is_missing() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner.deploy_announced(SITE).await;
    let mut files = announced(SITE);
    files["app.js"]["sizeBytes"] = json!(1);
    let (_, asked) = owner.send(Method::POST, "/api/deploy", json!({"sizeBytes": 0, "files": files})).await;
    assert_eq!(missing_of(&asked), ["app.js"]);
}

#[tokio::test]
async fn a_key_restricted_to_a_site_learns_nothing_of_files_of_another() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let (_, other) =
        owner.send(Method::POST, "/api/account/subdomains", json!({"name": "second-site-of-ana"})).await;
    let done = owner.deploy_announced(SITE).await.0;
    let asked_by = async |ids: Value| {
        let (_, key) = owner.send(Method::POST, "/api/keys", json!({"label": "k", "resourceIds": ids})).await;
        let body = json!({"sizeBytes": 0, "files": announced(SITE)});
        let (status, asked) = owner.api.send(Method::POST, "/api/deploy", key["key"].as_str(), &body).await;
        assert!(status.is_success(), "{asked}");
        missing_of(&asked).len()
    };
    assert_eq!(asked_by(json!({"subdomains": [other["id"]]})).await, SITE.len() - 1);
    assert_eq!(asked_by(json!({"pages": [done["pages"][0]["id"]]})).await, SITE.len() - 1);
    assert_eq!(asked_by(json!({"subdomains": [owner.subdomain_id]})).await, 0);
}

#[tokio::test]
async fn a_zip_whose_file_differs_from_its_hash_is_rejected() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner.deploy_announced(SITE).await;
    let before = (owner.pages().await, owner.stored_bytes().await);
    let html: &[u8] = b"<p>new";
    let script: &[u8] = b"new();";
    let site = with(&with(SITE, "index.html", html), "app.js", script);
    let long: &[u8] = b"longer than announced";
    let cases: [(&Files<'_>, &str, &str); 7] = [
        (&[("index.html", b"<p>bad"), ("app.js", script)], "index.html", "differ from the `sha256`"),
        (&[("index.html", html), ("app.js", b"bad();")], "app.js", "differ from the `sha256`"),
        (&[("index.html", html), ("app.js", long)], "app.js", "21 bytes, and 6 were announced"),
        (&[("index.html", html), ("app.js", script), ("x.js", b"")], "x.js", "not announced"),
        (&[("index.html", html), ("app.js", script), (".npmrc", b"")], ".npmrc", "not announced"),
        (&[("index.html", html)], "app.js", "the zip lacks it"),
        // Also a stored file that the zip has once more.
        (
            &[("index.html", html), ("app.js", script), ("s/plain.css", b"b{color:rex}")],
            "s/plain.css",
            "differ from the `sha256`",
        ),
    ];
    for (zipped, path, message) in cases {
        let id = owner.announced_and_uploaded(&site, &zip_of(zipped)).await;
        let (status, problem) = owner.process(&id).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::BAD_REQUEST, &json!("validation_failed")),
            "{path}: {problem}"
        );
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("entry `{path}`")) && detail.contains(message), "{detail}");
    }
    assert_eq!((owner.pages().await, owner.stored_bytes().await), before);
    assert_eq!(owner.file("app.js").await.unwrap(), "import('./chunk.js')");
    // Nothing of the rejected zips is stored except the zips, and nothing that is served is deleted.
    owner.sweep_blobs().await;
    assert_eq!(owner.deploy_announced(SITE).await.1, Vec::<String>::new());
}

#[tokio::test]
async fn a_file_released_between_announcement_and_processing_stays_stored() {
    let owner = Owner::with_settings(Plan::Pro, &["deploys.max_retained=1"]).await;
    owner.deploy_announced(SITE).await;
    let (status, waiting) = owner.announce(SITE, 0).await;
    assert_eq!((status, missing_of(&waiting).len()), (StatusCode::CREATED, 0), "{waiting}");
    let id = waiting["deployId"].as_str().unwrap();

    // Two other deploys replace the site, so that its files are no longer retained.
    owner.deploy(&[("index.html", b"other"), ("docs/index.html", b"other")]).await;
    owner.deploy(&[("index.html", b"another"), ("docs/index.html", b"another")]).await;
    assert_eq!(owner.file("app.js").await, None);
    owner.sweep_blobs().await;
    let (status, done) = owner.process(id).await;
    assert_eq!(status, StatusCode::OK, "{done}");
    assert_eq!(owner.file("app.js").await.unwrap(), "import('./chunk.js')");
    assert!(owner.pages().await["index"].0.starts_with("<title>Home"), "it was read from its original");

    // Without an announcement, they are gone, also for the next one.
    owner.deploy(&[("index.html", b"other"), ("docs/index.html", b"other")]).await;
    owner.deploy(&[("index.html", b"another"), ("docs/index.html", b"another")]).await;
    assert!(owner.sweep_blobs().await.contains::<[u8; 32]>(&Sha256::digest(b"import('./chunk.js')").into()));
    let (_, asked) = owner.announce(SITE, 0).await;
    assert_eq!(missing_of(&asked).len(), SITE.len() - 1);
}

#[tokio::test]
async fn originals_are_deleted_when_another_deploy_replaces_theirs() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let read = ["_headers", "_redirects", "docs/index.html", "index.html", "s/a.css"];
    let original = |path: &str| -> [u8; 32] {
        Sha256::digest(SITE.iter().find(|(other, _)| *other == path).unwrap().1).into()
    };
    owner.deploy_announced(SITE).await;
    owner.count("deploy_sources", read.len()).await;
    owner.sweep_blobs().await;
    assert_eq!(owner.announce(SITE, 0).await.0, StatusCode::CREATED, "they are still stored");
    owner.api.execute("delete from deploys where status = 'uploaded'").await.unwrap();

    // A changed file releases its own original only.
    let changed = with(SITE, "index.html", b"<p>new");
    owner.deploy_announced(&changed).await;
    owner.count("deploy_sources", read.len()).await;
    let deleted = owner.sweep_blobs().await;
    assert!(deleted.contains(&original("index.html")) && !deleted.contains(&original("s/a.css")));

    // A full zip releases all of them; a rollback those of its deploy.
    let last = owner.deploy_announced(SITE).await.0;
    owner.roll_back(&last).await;
    owner.count("deploy_sources", 0).await;
    assert!(owner.sweep_blobs().await.is_superset(&read.map(original).into()));
    owner.deploy_announced(SITE).await;
    owner.deploy(SITE).await;
    owner.count("deploy_sources", 0).await;
    assert!(owner.sweep_blobs().await.is_superset(&read.map(original).into()));
    assert!(owner.file("s/a.css").await.unwrap().contains("http"), "what is served stays");
}

#[tokio::test]
async fn asking_creates_no_deploy_and_announcements_are_bounded() {
    let owner = Owner::with_plan(Plan::Free).await;
    for _ in 0..30 {
        let (status, asked) = owner.announce(SITE, 0).await;
        assert_eq!((status, &asked["deployId"]), (StatusCode::OK, &Value::Null), "{asked}");
    }
    owner.count("deploys", 0).await;
    owner.count("deploy_sources", 0).await;
    let named = |count: usize| -> Value {
        let file = json!({"sha256": "0f".repeat(32), "sizeBytes": 1});
        Value::Object((0..count).map(|n| (format!("{n}.js"), file.clone())).collect::<Map<_, _>>())
    };
    let sized = |size: i64| json!({"a.js": {"sha256": "0f".repeat(32), "sizeBytes": size}});
    for (files, field) in [
        (named(2_001), "files"),
        (json!({}), "files"),
        (json!([]), "files"),
        (sized(-1), "files.a.js.sizeBytes"),
        (json!({"a.js": {"sha256": "0f", "sizeBytes": 1}}), "files.a.js.sha256"),
        (json!({"a.js": {"sha256": "0f".repeat(32)}}), "files.a.js.sizeBytes"),
        (json!({"../a.js": sized(1)["a.js"]}), "files.../a.js"),
        (json!({"a.js": sized(1)["a.js"], "./a.js": sized(1)["a.js"]}), "files../a.js"),
        (json!({"a\0.js": sized(1)["a.js"]}), "files.a.js"),
    ] {
        let body = json!({"sizeBytes": 0, "files": files});
        let (status, problem) = owner.send(Method::POST, "/api/deploy", body).await;
        assert_eq!(
            (status, &problem["fieldErrors"][0]["field"]),
            (StatusCode::BAD_REQUEST, &json!(field)),
            "{problem}"
        );
    }
    let (status, problem) = owner.send(Method::POST, "/api/deploy", json!({"sizeBytes": 0})).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("sizeBytes")));

    let file = sized(1)["a.js"].to_string();
    let twice = format!(r#"{{"sizeBytes": 0, "files": {{"a.js": {file}, "a.js": {file}}}}}"#);
    let request = Request::post("/api/deploy")
        .header("authorization", format!("Bearer {}", owner.key))
        .header("content-type", "application/json");
    let (status, _, problem) = owner.api.exchange(request.body(Body::from(twice)).unwrap()).await;
    assert_eq!((status, &problem["fieldErrors"][0]["code"]), (StatusCode::BAD_REQUEST, &json!("duplicate")));

    // On a paid plan, the most files with long paths fit into a request.
    owner.api.set_plan(owner.id, Plan::Pro).await;
    let file = json!({"sha256": "0f".repeat(32), "sizeBytes": 1});
    let long = "a".repeat(200);
    let many: Map<String, Value> = (0..20_000).map(|n| (format!("{long}/{n}.js"), file.clone())).collect();
    let (status, asked) =
        owner.send(Method::POST, "/api/deploy", json!({"sizeBytes": 0, "files": many})).await;
    assert_eq!((status, missing_of(&asked).len()), (StatusCode::OK, 20_000));
    let (status, problem) =
        owner.send(Method::POST, "/api/deploy", json!({"sizeBytes": 0, "files": named(20_001)})).await;
    assert_eq!((status, &problem["fieldErrors"][0]["code"]), (StatusCode::BAD_REQUEST, &json!("too_many")));
}

#[tokio::test]
async fn of_two_processes_of_an_announced_deploy_one_wins() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner.deploy_announced(SITE).await;
    let (_, started) = owner.announce(SITE, 0).await;
    let id = started["deployId"].as_str().unwrap();
    let both = tokio::join!(owner.process(id), owner.process(id));
    let statuses: BTreeSet<u16> = [both.0.0.as_u16(), both.1.0.as_u16()].into();
    assert_eq!(statuses, [200, 409].into());
    assert_eq!(owner.process(id).await.0, StatusCode::CONFLICT);
    assert_eq!(owner.deploy_announced(SITE).await.1, Vec::<String>::new(), "originals were retained once");
}
