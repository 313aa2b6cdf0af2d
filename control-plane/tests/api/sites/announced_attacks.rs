//! Announcements by which an account would serve or keep bytes that no deploy of it has, and previews that keep their originals.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::announced::{Files, PNG, SITE, missing_of};
use super::owner::{Owner, zip_of};

impl Owner {
    async fn stored_asset(&self, bytes: &[u8]) {
        let asset = json!({"filename": "a.png", "contentType": "image/png", "sizeBytes": bytes.len()});
        let (status, created) = self.send(Method::POST, "/api/pages/assets", asset).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
        self.api.upload_asset(self.id, created["id"].as_str().unwrap().parse().unwrap(), bytes).await;
    }
}

#[tokio::test]
async fn announced_hashes_of_assets_in_a_never_served_folder_are_no_proof_of_having_the_bytes() {
    let owner = Owner::with_plan(Plan::Pro).await;
    // Larger than a page, so that processing passes it on unread.
    let large = vec![b'x'; 600_000];
    owner.stored_asset(&large).await;
    owner.stored_asset(PNG).await;
    for folder in [".aws", "web/.git", "__MACOSX"] {
        let paths = [format!("{folder}/s/a.html"), format!("{folder}/s/x.bin")];
        let files: &Files<'_> = &[(&paths[0], &large), (&paths[1], PNG)];
        let (status, started) = owner.announce(files, 0).await;
        assert_eq!((status, missing_of(&started).len()), (StatusCode::CREATED, 0), "never served: {started}");
        let id = started["deployId"].as_str().unwrap();
        for publish in [true, false] {
            let root = format!("{folder}/s");
            let (status, problem) = owner.process_with(id, json!({"root": root, "publish": publish})).await;
            assert_eq!(
                (status, &problem["fieldErrors"][0]["field"]),
                (StatusCode::BAD_REQUEST, &json!("root")),
                "{problem}"
            );
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(&root) && detail.contains("never served"), "{detail}");
        }
    }
    owner.count("deploy_files", 0).await;
    assert_eq!((owner.file("a.html").await, owner.file("x.bin").await), (None, None));
}

#[tokio::test]
async fn announced_files_that_no_deploy_serves_are_missing_to_the_next_announcement() {
    let owner = Owner::with_settings(Plan::Pro, &["deploys.max_retained=1"]).await;
    owner.deploy_announced(SITE).await;
    let (status, waiting) = owner.announce(SITE, 0).await;
    assert_eq!((status, missing_of(&waiting).len()), (StatusCode::CREATED, 0), "{waiting}");
    owner.deploy(&[("index.html", b"other"), ("docs/index.html", b"other")]).await;
    owner.deploy(&[("index.html", b"another"), ("docs/index.html", b"another")]).await;
    let (status, asked) = owner.announce(SITE, 0).await;
    assert_eq!((status, missing_of(&asked).len()), (StatusCode::OK, SITE.len() - 1), "{asked}");

    // Once they are served, and charged, they are known again.
    let (status, done) = owner.process(waiting["deployId"].as_str().unwrap()).await;
    assert_eq!(status, StatusCode::OK, "{done}");
    assert_eq!(owner.deploy_announced(SITE).await.1, Vec::<String>::new());
}

#[tokio::test]
async fn an_announced_preview_keeps_the_originals_of_html_that_becomes_a_page_later() {
    let owner = Owner::with_plan(Plan::Free).await;
    let paths: Vec<String> = (0..12).map(|n| format!("{n}.html")).collect();
    let html: Vec<String> = (0..12).map(|n| format!("<title>{n}</title><p>{n}</p>")).collect();
    let site: Vec<(&str, &[u8])> =
        paths.iter().zip(&html).map(|(path, html)| (path.as_str(), html.as_bytes())).collect();
    let id = owner.announced_and_uploaded(&site, &zip_of(&site)).await;
    let (status, preview) = owner.process_with(&id, json!({"publish": false})).await;
    assert_eq!(status, StatusCode::CREATED, "{preview}");
    assert!(
        preview["files"].as_array().unwrap().iter().any(|file| file["reason"] == "project_limit"),
        "{preview}"
    );
    owner.sweep_blobs().await;
    assert_eq!(missing_of(&owner.announce(&site, 0).await.1), Vec::<String>::new());

    owner.api.set_plan(owner.id, Plan::Pro).await;
    let (status, live) = owner.publish(&preview).await;
    assert_eq!((status, &live["files"]), (StatusCode::OK, &Value::Array(Vec::new())), "{live}");
    owner.api.execute("delete from deploys where status = 'uploaded'").await.unwrap();
    owner.sweep_blobs().await;
    assert_eq!(owner.deploy_announced(&site).await.1, Vec::<String>::new());
}
