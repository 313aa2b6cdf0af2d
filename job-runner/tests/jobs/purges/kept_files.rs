//! Files of replaced deploys are deleted when their day is over.

use chrono::{DateTime, TimeDelta, Utc};
use sandbox::test::until;
use store::blobs::NewBlob;
use store::deploys::files::{DeployFile, insert_files, list_files, update_served_deploy};
use store::deploys::kept_files::{insert_kept, list_replaced};
use uuid::Uuid;

use crate::fixture::account::{Account, new_id, now};

impl Account {
    /// Inserts a deploy with a file of five bytes at each path.
    async fn deploy(&self, paths: &[&str]) -> Uuid {
        let id = new_id();
        let mut tx = store::begin(&self.database.db).await.unwrap();
        store::deploys::insert_deploy(&mut tx, self.id, id, 3, ("a test", None), now()).await.unwrap();
        let mut files = Vec::new();
        for path in paths {
            let mut sha256 = [0; 32];
            sha256[..path.len()].copy_from_slice(path.as_bytes());
            let blob = NewBlob { id: new_id(), sha256, size_bytes: 5 };
            let blobs = store::blobs::reference_blobs(&mut tx, self.id, &[blob]).await.unwrap();
            files.push(DeployFile {
                path: (*path).to_owned(),
                blob_id: blobs[0].id,
                size_bytes: 5,
                content_type: "text/javascript".to_owned(),
                by_content: false,
                reason: None,
                title: None,
            });
        }
        insert_files(&mut tx, self.id, id, &files).await.unwrap();
        store::commit(tx).await.unwrap();
        id
    }

    /// Copies files from one deploy to another, each until its end.
    async fn keep(&self, from: Uuid, to: Uuid, files: &[(&str, DateTime<Utc>)]) {
        let files: Vec<_> = files.iter().map(|(path, end)| ((*path).to_owned(), *end)).collect();
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        insert_kept(&mut conn, self.id, (from, to), &files).await.unwrap();
    }

    async fn paths(&self, deploy_id: Uuid) -> Vec<String> {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let files = list_replaced(&mut conn, self.id, deploy_id).await.unwrap();
        files.into_iter().map(|file| file.path).collect()
    }
}

#[tokio::test]
async fn old_files_are_deleted_when_they_expire_and_release_their_storage() {
    let account = Account::new().await;
    account.verified_domain("shop.example").await;
    let subdomain_id = sqlx::query_scalar("select id from subdomains").fetch_one(&account.database.db);
    let subdomain_id: Uuid = subdomain_id.await.unwrap();
    let first = account.deploy(&["a", "b", "c"]).await;
    let served = account.deploy(&["d"]).await;
    let unserved = account.deploy(&["e"]).await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    update_served_deploy(&mut conn, account.id, subdomain_id, Some(served)).await.unwrap();
    let (past, later) = (now() - TimeDelta::seconds(1), now() + TimeDelta::hours(1));
    account.keep(first, served, &[("a", past), ("b", past), ("c", later)]).await;
    // Bytes of a deploy that is not served are not counted, so they are not released.
    account.keep(first, unserved, &[("a", past)]).await;
    account.change("delete from deploy_files where path = 'b' and expires_at is null").await;
    account.change("update usage set storage_bytes = 20").await;

    let running = account.run(&[]).await;
    until(async || account.paths(unserved).await == ["e"] && account.paths(served).await == ["c", "d"]).await;
    running.stop().await;
    let usage = store::usage::find_usage(&mut conn, account.id).await.unwrap().unwrap();
    assert_eq!(usage.storage_bytes, 10);
    let own = list_files(&mut conn, account.id, served).await.unwrap();
    assert_eq!(own.into_iter().map(|file| file.path).collect::<Vec<_>>(), ["d"], "without the kept one");
    assert_eq!(account.paths(first).await, ["a", "c"]);

    // The bytes outlast the answers that an edge may have cached, and those with another reference stay.
    let mut tx = store::begin(&account.database.db).await.unwrap();
    assert_eq!(store::blobs::lock_unreferenced(&mut tx, now()).await.unwrap(), None);
    let due = store::blobs::lock_unreferenced(&mut tx, now() + TimeDelta::hours(1)).await.unwrap().unwrap();
    assert_eq!(due.sha256[0], b'b');
}
