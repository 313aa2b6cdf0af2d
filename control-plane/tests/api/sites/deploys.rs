//! Deploys: a zip is published atomically and can be rolled back.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::owner::{Owner, zip_of};
use crate::harness::{Api, send_to};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

#[tokio::test]
async fn a_zip_is_published_as_a_site() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let done = owner
        .deploy(&[
            (
                "my-site/dist/index.html",
                b"<title>Home</title><img src=img/a.png><link rel=stylesheet href=/s/a.css>",
            ),
            ("my-site/dist/docs/index.html", b"<a href=../>up</a><script src=../app.js></script>"),
            ("my-site/dist/a.html", b"a slug is longer"),
            ("my-site/dist/img/a.png", PNG),
            ("my-site/dist/s/a.css", b"b{background:url(../img/a.png)}"),
            ("my-site/dist/app.js", b"import('./chunk.js')"),
            ("my-site/dist/chunk.js", b"fetch('/none.json')"),
            ("my-site/package.json", b"{}"),
            ("my-site/__MACOSX/._x", b"junk"),
        ])
        .await;
    let address = done["assets"][0]["publicUrl"].as_str().unwrap();
    assert!(address.starts_with("http://assets.localhost:8080/") && address.ends_with("/a.png"), "{done}");
    assert_eq!(done["assets"].as_array().unwrap().len(), 1);
    let pages: Vec<_> = done["pages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|page| (page["slug"].as_str().unwrap(), page["status"].as_str().unwrap()))
        .collect();
    assert_eq!(pages, [("a-2", "created"), ("docs", "created"), ("index", "created")]);
    assert_eq!(done["pages"][1]["subdomainUrl"], format!("{}/docs", owner.site));
    assert_eq!(done["siteUrl"], format!("{}/", owner.site));
    assert_eq!(
        done["stats"],
        json!({"pagesCreated": 3, "pagesUpdated": 0, "assetsUploaded": 1, "filesServed": 7, "filesLeftOut": 2})
    );
    let outside = ["my-site/__MACOSX/._x", "my-site/package.json"];
    assert_eq!(done["files"], json!(outside.map(|path| json!({"path": path, "reason": "outside_root"}))));
    let notes = done["notes"].as_array().unwrap();
    assert!(notes.len() == 1 && notes[0]["reason"].as_str().unwrap().contains("slug `a-2`"), "{notes:?}");
    for empty in ["errors", "missingAssets", "stalePagesNotInZip"] {
        assert_eq!(done[empty], json!([]), "{empty}");
    }

    let pages = owner.pages().await;
    let home = format!("<title>Home</title><img src=\"{address}\"><link rel=stylesheet href=/s/a.css>");
    assert_eq!(pages["index"], (home, true));
    assert_eq!(pages["docs"].0, "<a href=../>up</a><script src=../app.js></script>");
    assert_eq!(owner.file("s/a.css").await.unwrap(), format!("b{{background:url({address})}}"));
    assert_eq!(owner.file("chunk.js").await.unwrap(), "fetch('/none.json')");
    let (kind, bytes) = owner.api.site_file(owner.subdomain_id, "img/a.png").await.unwrap();
    assert_eq!((kind.as_str(), bytes.as_slice()), ("image/png", PNG));
    assert_eq!(owner.file("package.json").await, None);
}

#[tokio::test]
async fn a_second_deploy_replaces_the_first() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner.deploy(&[("index.html", b"one"), ("about.html", b"about"), ("a.js", b"1"), ("b.js", b"22")]).await;
    assert_eq!(owner.stored_bytes().await, 3);
    let again = owner.deploy(&[("index.html", b"one"), ("about.html", b"new"), ("a.js", b"333")]).await;
    assert_eq!(
        again["stats"],
        json!({"pagesCreated": 0, "pagesUpdated": 1, "assetsUploaded": 0, "filesServed": 3, "filesLeftOut": 0})
    );
    assert_eq!(owner.file("a.js").await.unwrap(), "333");
    assert_eq!(owner.file("b.js").await, None, "no page is left that could reference it");
    assert_eq!(owner.stored_bytes().await, 3);

    let third = owner.deploy(&[("index.html", b"three"), ("c.js", b"c")]).await;
    let stale: Vec<_> = third["stalePagesNotInZip"]
        .as_array()
        .unwrap()
        .iter()
        .map(|page| page["slug"].as_str().unwrap())
        .collect();
    assert_eq!(stale, ["about"]);
    assert_eq!(owner.pages().await["about"], ("new".to_owned(), true), "a page without a new version stays");
    assert_eq!(owner.file("a.js").await.unwrap(), "333", "the remaining page may reference it");
    assert_eq!(owner.stored_bytes().await, 4);
}

#[tokio::test]
async fn a_deploy_and_its_predecessor_can_be_rolled_back() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let first = owner.deploy(&[("index.html", b"one"), ("a.js", b"1")]).await;
    let second = owner
        .deploy(&[("index.html", b"two"), ("more.html", b"more"), ("a.js", b"22"), ("b.js", b"b")])
        .await;
    assert_eq!(second["previousDeployId"], first["deployId"]);
    let roll_back = async |deploy: &Value| {
        let id = deploy["deployId"].as_str().unwrap();
        owner.send(Method::POST, &format!("/api/deploy/{id}/rollback"), Value::Null).await
    };
    let (status, problem) = roll_back(&first).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::CONFLICT, &json!("conflict")),
        "only the newest deploy can be rolled back"
    );

    let (status, rolled_back) = roll_back(&second).await;
    assert_eq!(
        (status, &rolled_back["servedDeployId"]),
        (StatusCode::OK, &first["deployId"]),
        "{rolled_back}"
    );
    let pages = owner.pages().await;
    assert_eq!((&pages["index"], &pages["more"]), (&("one".to_owned(), true), &("more".to_owned(), false)));
    assert_eq!((owner.file("a.js").await.as_deref(), owner.file("b.js").await), (Some("1"), None));
    assert_eq!(owner.stored_bytes().await, 1);
    assert_eq!(roll_back(&second).await.0, StatusCode::CONFLICT, "a second rollback is rejected");

    assert_eq!(roll_back(&first).await.0, StatusCode::OK);
    assert_eq!((owner.pages().await["index"].1, owner.file("a.js").await), (false, None));
    assert_eq!(owner.stored_bytes().await, 0);
}

#[tokio::test]
async fn a_rollback_turns_a_published_draft_back_into_a_draft() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let at = "2099-01-01T00:00:00Z";
    let html = "<p>not yet";
    for (slug, how, when) in [
        ("draft", "isPublished", json!(false)),
        ("later", "publishAt", json!(at)),
        ("same", "isPublished", json!(false)),
    ] {
        let page = json!({"slug": slug, "title": slug, "html": html, how: when});
        assert_eq!(owner.send(Method::POST, "/api/pages", page).await.0, StatusCode::CREATED);
    }
    let done =
        owner.deploy(&[("draft.html", b"a"), ("later.html", b"b"), ("same.html", html.as_bytes())]).await;
    assert!(owner.pages().await.values().all(|(_, is_published)| *is_published), "{done}");
    let path = format!("/api/deploy/{}/rollback", done["deployId"].as_str().unwrap());
    assert_eq!(owner.send(Method::POST, &path, Value::Null).await.0, StatusCode::OK);
    for (slug, page) in owner.pages().await {
        assert_eq!(page, (html.to_owned(), false), "{slug}");
    }
    let (_, listed) = owner.send(Method::GET, "/api/pages", Value::Null).await;
    let later = listed["pages"].as_array().unwrap().iter().find(|page| page["slug"] == "later").unwrap();
    assert_eq!(later["publishAt"], at);
}

#[tokio::test]
async fn an_invalid_zip_publishes_nothing_and_leaves_no_referenced_blobs() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner.deploy(&[("index.html", b"before")]).await;
    let mut broken = zip_of(&[("index.html", b"after"), ("a.js", b"new bytes"), ("z.bin", &[7; 1_000])]);
    let at = broken.windows(5).position(|word| word == b"z.bin").unwrap() + 8;
    broken[at] ^= 0x55;
    for (zip, message) in [
        (broken, "z.bin"),
        (b"no zip".to_vec(), "not a readable zip"),
        (zip_of(&[("a.txt", b"x")]), "no HTML page"),
        (zip_of(&[("site.zip", b"PK")]), "is a zip itself"),
    ] {
        let id = owner.uploaded(&zip).await;
        let (status, problem) = owner.process(&id).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::BAD_REQUEST, &json!("validation_failed")),
            "{problem}"
        );
        assert!(problem["detail"].as_str().unwrap().contains(message), "{problem}");
        assert_eq!(problem["fieldErrors"][0]["field"], "zip", "{problem}");
        let (_, seen) = owner.send(Method::GET, &format!("/api/deploy/{id}"), Value::Null).await;
        assert_eq!(seen["status"], "uploaded");
    }
    assert_eq!(owner.pages().await["index"].0, "before");
    assert_eq!(owner.file("a.js").await, None);
    assert_eq!(owner.stored_bytes().await, 0);
}

#[tokio::test]
async fn a_file_above_the_limit_of_the_plan_is_left_out_and_reported() {
    let owner = Owner::with_plan(Plan::Free).await;
    let large = vec![0; (2 << 20) + 1];
    let done = owner.deploy(&[("index.html", b"<img src=big.png>"), ("big.png", &large)]).await;
    assert!(done["errors"][0].as_str().unwrap().starts_with("big.png was left out"), "{done}");
    assert_eq!(done["missingAssets"], json!(["big.png"]));
    assert_eq!(done["files"], json!([{"path": "big.png", "reason": "asset_size_limit"}]));
    assert_eq!(
        (&done["stats"]["filesServed"], &done["stats"]["filesLeftOut"]),
        (&json!(1), &json!(1)),
        "{done}"
    );

    let (status, problem) =
        owner.send(Method::POST, "/api/deploy", json!({"sizeBytes": (20 << 20) + 1})).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("quota_exceeded")));
}

#[tokio::test]
async fn a_deploy_is_processed_once_and_only_after_its_upload() {
    let owner = Owner::with_plan(Plan::Pro).await;
    for size in [json!(0), json!((100 << 20) + 1), json!("x"), Value::Null] {
        let (status, problem) = owner.send(Method::POST, "/api/deploy", json!({"sizeBytes": size})).await;
        assert_eq!(
            (status, &problem["fieldErrors"][0]["field"]),
            (StatusCode::BAD_REQUEST, &json!("sizeBytes"))
        );
    }
    let (_, started) = owner.send(Method::POST, "/api/deploy", json!({"sizeBytes": 10})).await;
    let id = started["deployId"].as_str().unwrap();
    assert_eq!(started["uploadHeaders"]["Content-Type"], "application/zip");
    let (status, problem) = owner.process(id).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::CONFLICT, &json!("conflict")),
        "not uploaded: {problem}"
    );

    let id = owner.uploaded(&zip_of(&[("index.html", b"x")])).await;
    let both = tokio::join!(owner.process(&id), owner.process(&id));
    let mut statuses = [both.0.0.as_u16(), both.1.0.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    assert_eq!(owner.process(&id).await.0, StatusCode::CONFLICT);
    let (_, seen) = owner.send(Method::GET, &format!("/api/deploy/{id}"), Value::Null).await;
    assert_eq!(
        (&seen["status"], &seen["filesDone"], &seen["filesTotal"]),
        (&json!("processed"), &json!(1), &json!(1))
    );
    let missing = "/api/deploy/00000000-0000-0000-0000-000000000000";
    assert_eq!(owner.send(Method::GET, missing, Value::Null).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_deploy_continues_after_a_disconnect() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let id = owner.uploaded(&zip_of(&[("index.html", b"x")])).await;
    let mut other = owner.api.begin().await;
    store::usage::lock(&mut other, owner.id).await.unwrap();
    let (replica, key, path) =
        (owner.api.replica(&[]), owner.key.clone(), format!("/api/deploy/{id}/process"));
    let request =
        tokio::spawn(async move { send_to(&replica, Method::POST, &path, Some(&key), &Value::Null).await });
    owner.api.until_lock_wait().await;
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    store::commit(other).await.unwrap();
    sandbox::test::until(async || {
        let (_, seen) = owner.send(Method::GET, &format!("/api/deploy/{id}"), Value::Null).await;
        seen["status"] == "processed"
    })
    .await;
    assert_eq!(owner.pages().await["index"].0, "x");
}

#[tokio::test]
async fn too_many_open_deploys_are_rejected() {
    let api = Api::start(&["deploys.max_open=2"]).await;
    let key = api.trial().await;
    let ten = json!({"sizeBytes": 10});
    let begin = || api.send(Method::POST, "/api/deploy", Some(&key), &ten);
    begin().await;
    begin().await;
    let (status, problem) = begin().await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
}

#[tokio::test]
async fn a_key_restricted_to_pages_deploys_only_to_them() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let done = owner.deploy(&[("index.html", b"one")]).await;
    let page = &done["pages"][0]["id"];
    let key = owner.restricted_key(json!({"pages": [page]})).await;
    let process = async |files: &[(&str, &[u8])]| {
        let id = owner.uploaded_by(&key, &zip_of(files)).await;
        let path = format!("/api/deploy/{id}/process");
        owner.api.send(Method::POST, &path, Some(&key), &Value::Null).await
    };
    assert_eq!(process(&[("index.html", b"two")]).await.0, StatusCode::OK);
    let (status, problem) = process(&[("index.html", b"three"), ("new.html", b"x")]).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("insufficient_scope")));
    assert_eq!(owner.pages().await["index"].0, "two");
}

#[tokio::test]
async fn a_key_restricted_to_pages_rolls_back_no_deploy_of_others() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let done = owner.deploy(&[("index.html", b"one"), ("more.html", b"more")]).await;
    let key_for = async |pages: Value| {
        let body = json!({"label": "k", "resourceIds": {"pages": pages}});
        owner.send(Method::POST, "/api/keys", body).await.1["key"].as_str().unwrap().to_owned()
    };
    let (first, second) = (&done["pages"][0]["id"], &done["pages"][1]["id"]);
    let path = format!("/api/deploy/{}/rollback", done["deployId"].as_str().unwrap());
    let restricted = key_for(json!([first])).await;
    let (status, problem) = owner.api.send(Method::POST, &path, Some(&restricted), &Value::Null).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("insufficient_scope")));
    assert!(owner.pages().await.values().all(|(_, is_published)| *is_published), "nothing was rolled back");
    let both = key_for(json!([first, second])).await;
    assert_eq!(owner.api.send(Method::POST, &path, Some(&both), &Value::Null).await.0, StatusCode::OK);
}

#[tokio::test]
async fn reported_missing_paths_are_bounded() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let many: String = (0..3_000).map(|n| format!("<img src={n}.png>")).collect();
    let endless = format!("<img src=/{}.png>", "a".repeat(100_000));
    let done = owner.deploy(&[("index.html", endless.as_bytes()), ("more.html", many.as_bytes())]).await;
    let missing = done["missingAssets"].as_array().unwrap();
    assert_eq!(missing.len(), 1_000);
    assert!(missing.iter().all(|path| path.as_str().unwrap().len() <= 1_024));
}
