//! Static sites: which files of a zip are served, which are pages, and under which paths and slugs.

use std::collections::{BTreeMap, BTreeSet};

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::owner::{Owner, zip_of};
use crate::harness::send_to;

/// The listed files of a deploy with their reasons.
fn reasons(done: &Value) -> BTreeMap<&str, &str> {
    let files = done["files"].as_array().unwrap().iter();
    files.map(|file| (file["path"].as_str().unwrap(), file["reason"].as_str().unwrap())).collect()
}

fn counts(done: &Value) -> (u64, u64) {
    let stats = &done["stats"];
    (stats["filesServed"].as_u64().unwrap(), stats["filesLeftOut"].as_u64().unwrap())
}

#[tokio::test]
async fn a_project_with_dist_serves_dist_and_lists_the_rest() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let files: [(&str, &[u8]); 6] = [
        ("package.json", b"{}"),
        ("index.html", b"<script type=module src=/src/main.ts></script>"),
        ("src/main.ts", b"x"),
        ("dist/index.html", b"<script type=module src=/assets/main.js></script>"),
        ("dist/assets/main.js", b"built"),
        ("dist/Guide/v1.2.html", b"guide"),
    ];
    let done = owner.deploy(&files).await;
    assert_eq!(
        reasons(&done),
        ["index.html", "package.json", "src/main.ts"].map(|path| (path, "outside_root")).into()
    );
    assert_eq!((counts(&done), &done["missingAssets"]), ((3, 3), &json!([])));
    assert_eq!(
        owner.paths().await,
        [("guide/v1-2", "Guide/v1.2.html"), ("index", "index.html")]
            .map(|(slug, path)| (slug.to_owned(), Some(path.to_owned())))
            .into()
    );
    assert_eq!(owner.pages().await["index"].0, "<script type=module src=/assets/main.js></script>");
    assert_eq!(owner.file("assets/main.js").await.unwrap(), "built");
    assert_eq!(owner.file("src/main.ts").await, None);
}

#[tokio::test]
async fn a_named_root_is_served_and_a_wrong_one_changes_nothing() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let id = owner
        .uploaded(&zip_of(&[("en/index.html", b"en"), ("de/index.html", b"de"), ("x/a.js", b"x")]))
        .await;
    for (root, why) in [("fr", "no file in the folder"), ("../en", "upwards"), ("x", "no HTML page")] {
        let (status, problem) = owner.process_with(&id, json!({"root": root})).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("validation_failed")));
        assert!(problem.to_string().contains(why), "{problem}");
    }
    assert!(owner.pages().await.is_empty());
    let (status, done) = owner.process_with(&id, json!({"root": "/de/"})).await;
    assert_eq!((status, counts(&done)), (StatusCode::OK, (1, 2)), "{done}");
    assert_eq!(owner.pages().await["index"].0, "de");

    let done = owner.deploy(&[("en/index.html", b"en"), ("de/index.html", b"de")]).await;
    assert_eq!(counts(&done), (2, 0), "without a name all of it is the site: {done}");
}

#[tokio::test]
async fn a_site_of_120_html_files_on_a_trial_with_few_projects_left_goes_live_whole() {
    let owner = Owner::with_plan(Plan::Free).await;
    for n in 0..7 {
        let page = json!({"slug": format!("made-{n}"), "title": "t", "html": "made"});
        assert_eq!(owner.send(Method::POST, "/api/pages", page).await.0, StatusCode::CREATED);
    }
    let mut names = vec!["index.html".to_owned(), "about.html".to_owned()];
    names.extend((0..118).map(|n| format!("docs/{n:03}.html")));
    let files: Vec<(String, String)> =
        names.iter().map(|name| (name.clone(), format!("<p>{name}<img src=/a.png>"))).collect();
    let mut zip: Vec<(&str, &[u8])> =
        files.iter().map(|(name, html)| (name.as_str(), html.as_bytes())).collect();
    zip.push(("a.png", b"png"));
    let done = owner.deploy(&zip).await;
    assert_eq!((counts(&done), &done["errors"]), ((121, 0), &json!([])));
    let paths: BTreeSet<String> = owner.paths().await.into_values().flatten().collect();
    assert_eq!(paths, ["about.html", "docs/000.html", "index.html"].map(str::to_owned).into());
    let without_page = reasons(&done);
    assert_eq!(without_page.len(), 117);
    assert!(without_page.values().all(|reason| *reason == "project_limit"));
    for path in without_page.keys() {
        let (content_type, bytes) = owner.api.site_file(owner.subdomain_id, path).await.unwrap();
        let html = String::from_utf8(bytes).unwrap();
        assert_eq!(content_type, "text/html");
        assert!(html.starts_with(&format!("<p>{path}<img src=\"http://assets.")), "{html}");
    }
    let stored = owner.stored_bytes().await;
    assert!(stored > 117 * 60, "HTML without a page counts as stored: {stored}");

    let again = owner.deploy(&zip).await;
    assert_eq!(reasons(&again), without_page, "no page more or less");
    assert_eq!((&again["stats"]["pagesCreated"], owner.stored_bytes().await), (&json!(0), stored));
}

#[tokio::test]
async fn collisions_of_case_and_dash_lose_no_file() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let names = [
        "index.html",
        "About.html",
        "about.html",
        "a_b.html",
        "a-b.html",
        "a+b.html",
        "日本語.html",
        "a.html",
    ];
    let zip = names.map(|name| (name, name.as_bytes()));
    let done = owner.deploy(&zip).await;
    assert_eq!((counts(&done), &done["files"]), ((8, 0), &json!([])));
    let paths = owner.paths().await;
    let pages = owner.pages().await;
    for (slug, path) in &paths {
        assert_eq!(Some(&pages[slug].0), path.as_ref());
    }
    let served: BTreeSet<&str> = paths.values().flatten().map(String::as_str).collect();
    assert_eq!(served, names.into());
    assert_eq!((&paths["about"], &paths["a-b"]), (&Some("about.html".into()), &Some("a-b.html".into())));
    let noted: BTreeSet<&str> =
        done["notes"].as_array().unwrap().iter().map(|note| note["file"].as_str().unwrap()).collect();
    assert_eq!(noted, ["About.html", "a_b.html", "a+b.html", "日本語.html", "a.html"].into());
    let again = owner.deploy(&zip).await;
    assert_eq!((&again["stats"]["pagesCreated"], owner.paths().await), (&json!(0), paths));
}

#[tokio::test]
async fn secrets_in_a_zip_are_never_stored() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let secrets =
        [".env", ".env.local", "a/.npmrc", ".git/config", ".ssh/id_rsa", "notes.html~", ".aws/x.html"];
    let mut files: Vec<(&str, &[u8])> =
        secrets.iter().map(|path| (*path, b"do not publish".as_slice())).collect();
    files.push(("index.html", b"x"));
    let done = owner.deploy(&files).await;
    assert_eq!(reasons(&done), secrets.map(|path| (path, "never_served")).into());
    assert_eq!(counts(&done), (1, 7));
    for path in secrets {
        assert_eq!(owner.file(path).await, None, "{path}");
    }
    let nothing_stored =
        "do $$ begin if exists (select from deploy_files) then raise 'files were stored'; end if; end $$";
    owner.api.execute(nothing_stored).await.unwrap();
    assert_eq!(owner.paths().await.len(), 1);
}

#[tokio::test]
async fn more_files_than_the_plan_allows_are_refused() {
    let owner = Owner::with_plan(Plan::Free).await;
    let names: Vec<String> = (0..2_001).map(|n| format!("{n}.html")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"x".as_slice())).collect();
    let id = owner.uploaded(&zip_of(&files)).await;
    let (status, problem) = owner.process(&id).await;
    assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("validation_failed")));
    assert!(problem["detail"].as_str().unwrap().contains("more than 2000 files"), "{problem}");
    assert!(owner.pages().await.is_empty());
}

#[tokio::test]
async fn html_over_the_limit_of_pages_is_served_as_a_file_and_becomes_a_page_again_by_a_rollback() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner.deploy(&[("index.html", b"x"), ("report.html", b"small")]).await;
    let large = "<p>x</p>".repeat(70_000);
    let second = owner.deploy(&[("index.html", b"x"), ("report.html", large.as_bytes())]).await;
    assert_eq!(reasons(&second), [("report.html", "too_large")].into());
    assert_eq!(second["stalePagesNotInZip"][0]["slug"], "report");
    assert_eq!(owner.paths().await["report"], None, "the file has the path");
    assert_eq!(owner.file("report.html").await.unwrap(), large);
    owner.roll_back(&second).await;
    assert_eq!(owner.paths().await["report"].as_deref(), Some("report.html"));
    assert_eq!((owner.file("report.html").await, owner.pages().await["report"].0.as_str()), (None, "small"));
}

#[tokio::test]
async fn a_file_that_becomes_a_page_is_not_served_as_a_file_of_the_previous_deploy() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let large = "<p>x</p>".repeat(70_000);
    owner.deploy(&[("index.html", b"x"), ("old.html", b"stale"), ("report.html", large.as_bytes())]).await;
    let done = owner.deploy(&[("index.html", b"x"), ("report.html", b"small")]).await;
    assert_eq!(done["stalePagesNotInZip"][0]["slug"], "old");
    assert_eq!(owner.file("report.html").await, None);
    let paths = owner.paths().await;
    assert_eq!(paths["report"].as_deref(), Some("report.html"));
    assert_eq!(paths["old"].as_deref(), Some("old.html"), "a page that stays keeps its path");
}

#[tokio::test]
async fn pages_exchange_their_paths_and_a_rollback_returns_them() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner.deploy(&[("index.html", b"x"), ("Team.html", b"upper"), ("a_b.html", b"low")]).await;
    let before = owner.paths().await;
    assert_eq!(before["team"].as_deref(), Some("Team.html"));
    let second = owner
        .deploy(&[
            ("index.html", b"x"),
            ("Team.html", b"upper"),
            ("team.html", b"lower"),
            ("a_b.html", b"low"),
            ("a-b.html", b"dash"),
        ])
        .await;
    let after = owner.paths().await;
    assert_eq!(
        (after["team"].as_deref(), after["team-2"].as_deref()),
        (Some("team.html"), Some("Team.html"))
    );
    assert_eq!((after["a-b"].as_deref(), after["a-b-2"].as_deref()), (Some("a-b.html"), Some("a_b.html")));
    owner.roll_back(&second).await;
    let paths = owner.paths().await;
    let with_path: BTreeMap<String, Option<String>> =
        paths.clone().into_iter().filter(|(_, path)| path.is_some()).collect();
    assert_eq!((with_path, paths.len()), (before, 5), "the new ones have no path");
    let pages = owner.pages().await;
    assert_eq!(pages["team"], ("upper".to_owned(), true));
    assert_eq!(pages["team-2"], ("upper".to_owned(), false));
}

#[tokio::test]
async fn pages_of_earlier_versions_get_their_paths_with_the_next_deploy() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let zip: [(&str, &[u8]); 2] = [("index.html", b"x"), ("Docs/Über uns.html", b"about")];
    owner.deploy(&zip).await;
    owner.api.execute("update pages set path = null").await.unwrap();
    let done = owner.deploy(&zip).await;
    let statuses: Vec<_> = done["pages"].as_array().unwrap().iter().map(|page| &page["status"]).collect();
    assert_eq!((statuses, &done["notes"]), (vec![&json!("unchanged"); 2], &json!([])));
    let paths = owner.paths().await;
    assert_eq!(paths["docs/-ber-uns"].as_deref(), Some("Docs/Über uns.html"));
    owner.roll_back(&done).await;
    assert!(owner.paths().await.values().all(Option::is_none), "as before the deploy");
    assert!(owner.pages().await.values().all(|(_, is_published)| *is_published));
}

#[tokio::test]
async fn a_page_that_the_api_creates_during_a_deploy_is_not_overwritten() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let zip = zip_of(&[("About.html", b"upper"), ("about.html", b"lower")]);
    let id = owner.uploaded(&zip).await;
    let mut held = owner.api.begin().await;
    store::usage::lock(&mut held, owner.id).await.unwrap();
    let (replica, key, path) =
        (owner.api.replica(&[]), owner.key.clone(), format!("/api/deploy/{id}/process"));
    let request =
        tokio::spawn(async move { send_to(&replica, Method::POST, &path, Some(&key), &Value::Null).await });
    owner.api.until_lock_wait().await;
    let page = store::pages::PageUpsert {
        id: uuid::Uuid::from_u128(7),
        folder_id: None,
        subdomain_id: owner.subdomain_id,
        slug: "about-2".to_owned(),
        title: "mine".to_owned(),
        html: "made".to_owned(),
        css: None,
        metadata: None,
        is_published: None,
        deploy_id: None,
    };
    let now = service::Clock::system().now();
    store::pages::upsert_page(&mut held, owner.id, page, now).await.unwrap();
    store::commit(held).await.unwrap();
    let (status, problem) = request.await.unwrap();
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
    assert_eq!(owner.pages().await.into_keys().collect::<Vec<_>>(), ["about-2"], "nothing was published");
    let (status, done) = owner.process(&id).await;
    assert_eq!(status, StatusCode::OK, "{done}");
    let pages = owner.pages().await;
    assert_eq!((pages["about-2"].0.as_str(), pages["about-3"].0.as_str()), ("made", "upper"));
}

#[tokio::test]
async fn a_key_restricted_to_pages_adds_no_html_without_a_page() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let done = owner.deploy(&[("index.html", b"one")]).await;
    let key = owner.restricted_key(json!({"pages": [done["pages"][0]["id"]]})).await;
    let large = "<p>x</p>".repeat(70_000);
    let zip = zip_of(&[("index.html", b"two"), ("large.html", large.as_bytes())]);
    let path = format!("/api/deploy/{}/process", owner.uploaded_by(&key, &zip).await);
    let (status, problem) = owner.api.send(Method::POST, &path, Some(&key), &Value::Null).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("insufficient_scope")));
    assert_eq!((owner.pages().await["index"].0.as_str(), owner.file("large.html").await), ("one", None));
}
