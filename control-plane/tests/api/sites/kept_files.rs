//! Files with a content hash stay reachable for a day after their deploy was replaced.

use chrono::{DateTime, TimeDelta, Utc};
use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use service::Clock;
use store::deploys::kept_files::{DeletedFiles, Filter, delete_kept};

use super::owner::{Owner, zip_of};

const FIRST: &str = "assets/app-4f9a2b1c.js";
const SECOND: &str = "assets/app-5e8b3c2d.js";
const THIRD: &str = "assets/app-6d7c4b3e.js";

impl Owner {
    /// Deploys a site of one page and a script.
    async fn deploy_script(&self, path: &str, script: &str) -> Value {
        self.deploy(&[("index.html", b"x"), (path, script.as_bytes()), ("plain.css", path.as_bytes())]).await
    }

    async fn deploy_without_old_files(&self, files: &[(&str, &[u8])]) -> Value {
        let id = self.uploaded(&zip_of(files)).await;
        let (status, done) = self.process_with(&id, json!({"keepOldFiles": false})).await;
        assert_eq!(status, StatusCode::OK, "{done}");
        done
    }

    async fn files(&self, paths: [&str; 3]) -> [Option<String>; 3] {
        let [a, b, c] = paths;
        [self.file(a).await, self.file(b).await, self.file(c).await]
    }

    /// When the kept files expire, by path.
    async fn kept(&self) -> Vec<(String, DateTime<Utc>)> {
        let mut tx = self.api.begin().await;
        let served =
            store::deploys::files::lock_served_deploy(&mut tx, self.id, self.subdomain_id).await.unwrap();
        let deploy_id = served.unwrap().deploy_id;
        let files = store::deploys::kept_files::list_replaced(&mut tx, self.id, deploy_id).await.unwrap();
        files.into_iter().filter_map(|file| Some((file.path, file.expires_at?))).collect()
    }

    /// Lets a day pass for the kept files.
    async fn pass_a_day(&self) {
        let statement = "update deploy_files set expires_at = expires_at - interval '24 hours'";
        self.api.execute(statement).await.unwrap();
    }

    /// Deletes expired files, as the job does.
    async fn sweep_kept_files(&self) -> DeletedFiles {
        let filter = Filter { expired_at: Some(Clock::system().now()), ..Filter::default() };
        let mut tx = self.api.begin().await;
        store::usage::lock(&mut tx, self.id).await.unwrap();
        let deleted = delete_kept(&mut tx, self.id, filter).await.unwrap();
        store::usage::release_bytes(&mut tx, self.id, deleted.bytes).await.unwrap();
        store::commit(tx).await.unwrap();
        deleted
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[tokio::test]
async fn an_open_tab_loads_the_script_of_the_deploy_before_for_a_day() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner.deploy(&[("index.html", b"x"), (FIRST, b"one"), ("plain.js", b"p"), ("plain.css", b"c")]).await;
    assert_eq!(owner.stored_bytes().await, 5);
    let second = owner.deploy(&[("index.html", b"y"), (SECOND, b"second")]).await;
    assert_eq!(owner.files([FIRST, SECOND, "plain.js"]).await, [some("one"), some("second"), None]);
    assert_eq!((&second["stats"]["filesServed"], &second["files"]), (&json!(2), &json!([])), "{second}");
    assert_eq!((&second["notes"], &second["assets"]), (&json!([]), &json!([])));
    let (_, seen) = owner
        .send(Method::GET, &format!("/api/deploy/{}", second["deployId"].as_str().unwrap()), Value::Null)
        .await;
    assert_eq!(seen["filesTotal"], 2);
    assert_eq!(owner.stored_bytes().await, 9, "the old script takes storage");
    let kept = owner.kept().await;
    let left = kept[0].1 - Clock::system().now();
    assert!(left > TimeDelta::hours(23) && left <= TimeDelta::hours(24), "{kept:?}");

    owner.deploy(&[("index.html", b"z"), (THIRD, b"3")]).await;
    assert_eq!(owner.files([FIRST, SECOND, THIRD]).await, [some("one"), some("second"), some("3")]);
    assert_eq!(owner.kept().await[0], kept[0], "the next deploy does not prolong it");
    assert_eq!(owner.stored_bytes().await, 10);

    owner.pass_a_day().await;
    assert_eq!(owner.files([FIRST, SECOND, THIRD]).await, [None, None, some("3")], "before they are deleted");
    let deleted = owner.sweep_kept_files().await;
    assert_eq!((deleted.bytes, deleted.blobs.len()), (9, 2));
    assert_eq!(owner.stored_bytes().await, 1);

    // A file that comes back is one of the site again, with a day of its own once it is replaced.
    owner.deploy_script(FIRST, "one").await;
    assert_eq!(owner.kept().await.len(), 1);
    owner.deploy_script(SECOND, "second").await;
    assert_eq!(owner.files([FIRST, SECOND, THIRD]).await, [some("one"), some("second"), some("3")]);
}

#[tokio::test]
async fn keep_old_files_false_ends_the_old_files_of_all_earlier_deploys() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner.deploy(&[("index.html", b"x"), (FIRST, b"one")]).await;
    owner.deploy(&[("index.html", b"x"), (SECOND, b"second")]).await;
    owner.deploy_without_old_files(&[("index.html", b"x"), (THIRD, b"3")]).await;
    assert_eq!(owner.files([FIRST, SECOND, THIRD]).await, [None, None, some("3")]);
    assert_eq!((owner.stored_bytes().await, owner.kept().await), (1, Vec::new()));
    let id = owner.uploaded(&zip_of(&[("index.html", b"x")])).await;
    let (status, problem) = owner.process_with(&id, json!({"keepOldFiles": "no"})).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::BAD_REQUEST, &json!("validation_failed")),
        "{problem}"
    );
}

#[tokio::test]
async fn a_rollback_keeps_the_files_of_the_deploy_that_it_undoes() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let first = owner.deploy(&[("index.html", b"x"), (FIRST, b"one")]).await;
    let second = owner.deploy(&[("index.html", b"y"), (SECOND, b"second")]).await;
    owner.roll_back(&second).await;
    assert_eq!(owner.files([FIRST, SECOND, THIRD]).await, [some("one"), some("second"), None]);
    assert_eq!((owner.stored_bytes().await, owner.kept().await.len()), (9, 1));
    owner.roll_back(&first).await;
    assert_eq!(
        owner.files([FIRST, SECOND, THIRD]).await,
        [None, None, None],
        "no deploy is left to keep them"
    );
    assert_eq!(owner.stored_bytes().await, 0);

    owner.deploy(&[("index.html", b"x"), (FIRST, b"one")]).await;
    let second = owner.deploy(&[("index.html", b"y"), (SECOND, b"second")]).await;
    let third = owner.deploy(&[("index.html", b"z"), (THIRD, b"3")]).await;
    let path = format!("/api/deploy/{}/rollback", third["deployId"].as_str().unwrap());
    let (status, done) = owner.send(Method::POST, &path, json!({"keepOldFiles": false})).await;
    assert_eq!((status, &done["notes"]), (StatusCode::OK, &json!([])), "{done}");
    assert_eq!(owner.files([FIRST, SECOND, THIRD]).await, [None, some("second"), None]);
    assert_eq!((owner.stored_bytes().await, owner.kept().await), (6, Vec::new()));
    owner.roll_back(&second).await;
    assert_eq!(owner.files([FIRST, SECOND, THIRD]).await, [some("one"), some("second"), None]);
    assert_eq!(owner.stored_bytes().await, 9);
}

#[tokio::test]
async fn a_rollback_does_not_resurrect_files_that_expired() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner.deploy(&[("index.html", b"x"), (FIRST, b"one")]).await;
    owner.deploy(&[("index.html", b"y"), (SECOND, b"second")]).await;
    let third = owner.deploy(&[("index.html", b"z"), (THIRD, b"3")]).await;
    owner.pass_a_day().await;
    // The job has not deleted them yet.
    owner.roll_back(&third).await;
    assert_eq!(owner.files([FIRST, SECOND, THIRD]).await, [None, some("second"), some("3")]);
    assert_eq!(owner.stored_bytes().await, 7);
    owner.pass_a_day().await;
    assert_eq!(owner.sweep_kept_files().await.bytes, 1);
    assert_eq!(owner.stored_bytes().await, 6);
    let fourth = owner.deploy(&[("index.html", b"z")]).await;
    owner.pass_a_day().await;
    owner.sweep_kept_files().await;
    owner.roll_back(&fourth).await;
    assert_eq!(owner.files([FIRST, SECOND, THIRD]).await, [None, some("second"), None]);
    assert_eq!(owner.stored_bytes().await, 6);
}

#[tokio::test]
async fn old_files_outlast_the_deploys_that_are_retained_for_rollbacks() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let paths: Vec<String> = (0..8).map(|n| format!("app-4f9a2b{n}c.js")).collect();
    for path in &paths {
        owner.deploy(&[("index.html", b"x"), (path, path.as_bytes())]).await;
    }
    for path in &paths {
        assert_eq!(owner.file(path).await.as_ref(), Some(path));
    }
    assert_eq!(owner.stored_bytes().await, 8 * 15);
    // Their bytes are not deleted with the oldest deploys.
    let mut tx = owner.api.begin().await;
    let later = Clock::system().now() + TimeDelta::days(1);
    while let Some(blob) = store::blobs::lock_unreferenced(&mut tx, later).await.unwrap() {
        store::blobs::delete_blob(&mut tx, blob.account_id, blob.id).await.unwrap();
    }
    store::commit(tx).await.unwrap();
    assert_eq!(owner.file(&paths[0]).await.as_ref(), Some(&paths[0]));
    owner.deploy_without_old_files(&[("index.html", b"x")]).await;
    assert_eq!(owner.stored_bytes().await, 0);
}

#[tokio::test]
async fn a_deploy_goes_on_without_the_old_files_that_the_plan_has_no_room_for() {
    let owner = Owner::with_plan(Plan::Free).await;
    let large = vec![7; 2 << 20];
    let site = |generation: usize| {
        let scripts = (0..6).map(|n| (format!("app-4f9a2b{generation}{n}.js"), large.as_slice()));
        let page = (String::from("index.html"), b"x".as_slice());
        scripts.chain([page]).collect::<Vec<(String, &[u8])>>()
    };
    let deploy = async |generation: usize| {
        let site = site(generation);
        owner.deploy(&site.iter().map(|(path, bytes)| (path.as_str(), *bytes)).collect::<Vec<_>>()).await
    };
    let first = deploy(0).await;
    assert_eq!((owner.stored_bytes().await, &first["notes"]), (12 << 20, &json!([])));
    let second = deploy(1).await;
    assert_eq!((owner.stored_bytes().await, owner.kept().await.len()), (20 << 20, 4));
    let note = &second["notes"][0];
    assert_eq!(note["file"], "app-4f9a2b04.js", "{second}");
    assert!(note["reason"].as_str().unwrap().contains("and 1 more did not stay reachable"), "{second}");
    // Old files never stand in the way of a deploy or a rollback.
    let third = deploy(2).await;
    let kept: Vec<String> = owner.kept().await.into_iter().map(|(path, _)| path).collect();
    assert_eq!(kept, (0..4).map(|n| format!("app-4f9a2b1{n}.js")).collect::<Vec<_>>(), "the newest first");
    let path = format!("/api/deploy/{}/rollback", third["deployId"].as_str().unwrap());
    let (status, done) = owner.send(Method::POST, &path, Value::Null).await;
    assert_eq!((status, &done["notes"][0]["file"]), (StatusCode::OK, &json!("app-4f9a2b24.js")), "{done}");
    assert_eq!(owner.stored_bytes().await, 20 << 20);
}

#[tokio::test]
async fn a_secret_that_an_earlier_deploy_served_is_not_kept() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner.deploy(&[("index.html", b"x"), (FIRST, b"one")]).await;
    let secret = ".git/objects-4f9a2b1c.js";
    let statement = format!(
        "insert into deploy_files (deploy_id, path, blob_id, size_bytes, content_type, by_content)
         select deploy_id, '{secret}', blob_id, size_bytes, content_type, by_content from deploy_files;
         update usage set storage_bytes = storage_bytes * 2"
    );
    owner.api.execute(&statement).await.unwrap();
    assert_eq!(owner.file(secret).await, some("one"));
    owner.deploy(&[("index.html", b"x")]).await;
    assert_eq!((owner.file(FIRST).await, owner.file(secret).await), (some("one"), None));
    assert_eq!(owner.stored_bytes().await, 3);
}

#[tokio::test]
async fn suspension_and_deletion_end_the_old_files_at_once() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner.deploy(&[("index.html", b"x"), (FIRST, b"one")]).await;
    owner.deploy(&[("index.html", b"x"), (SECOND, b"second")]).await;
    let now = Clock::system().now();
    let mut tx = owner.api.begin().await;
    assert!(store::accounts::suspend(&mut tx, owner.id, None, now).await.unwrap());
    assert!(store::accounts::resume(&mut tx, owner.id, now).await.unwrap());
    store::commit(tx).await.unwrap();
    assert_eq!(owner.files([FIRST, SECOND, THIRD]).await, [None, some("second"), None]);
    assert_eq!(owner.stored_bytes().await, 6);

    owner.deploy(&[("index.html", b"x"), (THIRD, b"3")]).await;
    assert_eq!(owner.kept().await.len(), 1);
    let mut tx = owner.api.begin().await;
    store::purges::delete_account(&mut tx, owner.id, now).await.unwrap();
    store::commit(tx).await.unwrap();
    assert_eq!(owner.files([FIRST, SECOND, THIRD]).await, [None, None, None]);
    let empty = "do $$ begin assert not exists (select from deploy_files); end $$";
    owner.api.execute(empty).await.unwrap();
}
