//! Unreferenced bytes are deleted, and no others.

use chrono::{DateTime, TimeDelta, Utc};
use sandbox::test::until;
use sha2::{Digest, Sha256};
use store::assets::Asset;
use store::blobs::NewBlob;
use store::deploys::sources::NewSource;
use store::form_files::NewFormFile;
use store::forms::Form;
use store::submissions::{NewSubmission, WriteContext, insert_submission};
use store::uploads::{NewUpload, Purpose};
use uuid::Uuid;

use crate::fixture::account::{Account, new_id, now};

fn upload(id: Uuid, purpose: Purpose, expires_in: TimeDelta) -> NewUpload<'static> {
    NewUpload {
        id,
        purpose,
        content_type: "text/plain",
        size_bytes: 5,
        expires_at: now() + expires_in,
        created_at: now(),
    }
}

fn form_file(form_id: Uuid, created_at: DateTime<Utc>) -> NewFormFile<'static> {
    NewFormFile {
        id: new_id(),
        form_id,
        field: "photo",
        filename: "a.txt",
        content_type: "text/plain",
        size_bytes: 5,
        visitor: &[7],
        created_at,
    }
}

impl Account {
    /// Creates an asset with an upload that expires after `expires_in`, and stores its bytes if given.
    async fn asset(&self, bytes: Option<&[u8]>, expires_in: TimeDelta) -> Uuid {
        let asset = Asset {
            id: new_id(),
            page_id: None,
            filename: "a.txt".to_owned(),
            content_type: "text/plain".to_owned(),
            size_bytes: 5,
            blob_id: None,
            created_at: now(),
        };
        let upload = upload(asset.id, Purpose::Asset, expires_in);
        let mut tx = store::begin(&self.database.db).await.unwrap();
        assert!(store::usage::reserve_bytes(&mut tx, self.id, 5, -1).await.unwrap());
        store::assets::insert_asset(&mut tx, self.id, &asset).await.unwrap();
        store::uploads::insert_upload(&mut tx, self.id, &upload).await.unwrap();
        if let Some(bytes) = bytes {
            let blob = self.put(bytes);
            let settled = store::blobs::reference_blobs(&mut tx, self.id, &[blob]).await.unwrap();
            store::assets::update_blob(&mut tx, self.id, asset.id, settled[0].id).await.unwrap();
            store::uploads::finish_upload(&mut tx, self.id, asset.id, now()).await.unwrap();
        }
        store::commit(tx).await.unwrap();
        asset.id
    }

    pub(super) fn put(&self, bytes: &[u8]) -> NewBlob {
        let sha256 = Sha256::digest(bytes).into();
        let folder = self.blobs.path().join("kept").join(self.id.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(hex::encode(sha256)), bytes).unwrap();
        NewBlob { id: new_id(), sha256, size_bytes: 5 }
    }

    /// Creates a form with a submission.
    async fn submitted_form(&self) -> (Uuid, Uuid) {
        let form = Form::new(new_id(), "F".to_owned(), Vec::new(), now());
        let new = NewSubmission {
            id: new_id(),
            external_id: None,
            payload: serde_json::Map::new(),
            extra: serde_json::Map::new(),
            spam_reasons: Vec::new(),
        };
        let writer = WriteContext { now: now(), traceparent: None, depth: 0, new_id: &new_id };
        let mut tx = store::begin(&self.database.db).await.unwrap();
        store::forms::insert_form(&mut tx, self.id, &form).await.unwrap();
        let form = store::forms::find_form(&mut tx, self.id, form.id).await.unwrap().unwrap();
        insert_submission(&mut tx, self.id, &form, &new, -1, &writer).await.unwrap();
        store::commit(tx).await.unwrap();
        (form.id, new.id)
    }

    pub(super) async fn stored_bytes(&self) -> i64 {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::usage::find_usage(&mut conn, self.id).await.unwrap().unwrap().storage_bytes
    }

    /// Deletes an asset as the API does.
    async fn delete_asset(&self, id: Uuid) {
        let mut tx = store::begin(&self.database.db).await.unwrap();
        let asset = store::assets::delete_asset(&mut tx, self.id, id).await.unwrap().unwrap();
        store::usage::release_bytes(&mut tx, self.id, asset.size_bytes).await.unwrap();
        store::blobs::release_blobs(&mut tx, self.id, asset.blob_id.as_slice(), now()).await.unwrap();
        store::commit(tx).await.unwrap();
    }
}

#[tokio::test]
async fn the_storage_reserved_for_an_expired_upload_is_released() {
    let account = Account::new().await;
    let late = account.asset(None, TimeDelta::seconds(-1)).await;
    let waiting = account.asset(None, TimeDelta::hours(1)).await;
    let stored = account.asset(Some(b"words"), TimeDelta::seconds(-1)).await;
    assert_eq!(account.stored_bytes().await, 15);
    let running = account.run(&[]).await;
    until(async || account.stored_bytes().await == 10).await;
    running.stop().await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    for (id, is_there) in [(late, false), (waiting, true), (stored, true)] {
        let asset = store::assets::find_asset(&mut conn, account.id, id).await.unwrap();
        assert_eq!(asset.is_some(), is_there);
    }
    assert_eq!(account.blobs.files().len(), 1);
}

#[tokio::test]
async fn bytes_are_deleted_with_their_last_reference() {
    let account = Account::new().await;
    let one = account.asset(Some(b"words"), TimeDelta::hours(1)).await;
    let other = account.asset(Some(b"words"), TimeDelta::hours(1)).await;
    let another = account.asset(Some(b"other"), TimeDelta::hours(1)).await;
    assert_eq!(account.blobs.files().len(), 2, "equal bytes are stored once");
    account.delete_asset(one).await;
    account.delete_asset(another).await;
    let running = account.run(&[]).await;
    until(async || account.blobs.files().len() == 1).await;
    account.delete_asset(other).await;
    until(async || account.blobs.files().is_empty()).await;
    let no_row = "do $$ begin assert not exists (select from blobs); end $$";
    until(async || store::execute_raw(&account.database.db, no_row).await.is_ok()).await;
    running.stop().await;
}

#[tokio::test]
async fn bytes_that_cannot_be_deleted_block_no_others_and_are_retried() {
    let account = Account::new().await;
    let stuck = account.asset(Some(b"words"), TimeDelta::hours(1)).await;
    let other = account.asset(Some(b"other"), TimeDelta::hours(1)).await;
    let path = account.blobs.path().join("kept").join(account.id.to_string());
    let path = path.join(hex::encode(Sha256::digest(b"words")));
    // A folder can't be deleted as a file.
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("inside"), "x").unwrap();
    account.delete_asset(stuck).await;
    account.delete_asset(other).await;
    let running = account.run(&["garbage_collection.retry_interval=100ms"]).await;
    until(async || account.blobs.files().len() == 1).await;
    let one_row = "do $$ begin assert (select count(*) from blobs) = 1; end $$";
    until(async || store::execute_raw(&account.database.db, one_row).await.is_ok()).await;
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::write(&path, "words").unwrap();
    until(async || account.blobs.files().is_empty()).await;
    running.stop().await;
}

#[tokio::test]
async fn bytes_of_a_deleted_account_are_deleted_twice() {
    let account = Account::new().await;
    account.asset(Some(b"words"), TimeDelta::hours(1)).await;
    account.change("update accounts set claim_deadline = now()").await;
    let running = account.run(&["purge.poll_interval=20ms", "purge.second_pass_after=300ms"]).await;
    until(async || account.blobs.files().is_empty()).await;
    // An upload that was in progress meanwhile.
    account.put(b"later");
    until(async || account.blobs.files().is_empty()).await;
    let count = "do $$ begin assert not exists (select from blob_purges); end $$";
    until(async || store::execute_raw(&account.database.db, count).await.is_ok()).await;
    running.stop().await;
}

#[tokio::test]
async fn an_unprocessed_deploy_is_deleted_with_its_zip() {
    let account = Account::new().await;
    let (id, blob) = (new_id(), account.put(b"zip"));
    let mut tx = store::begin(&account.database.db).await.unwrap();
    let long_ago = now() - TimeDelta::hours(25);
    store::deploys::insert_deploy(&mut tx, account.id, id, 3, ("a key", None), long_ago).await.unwrap();
    let settled = store::blobs::reference_blobs(&mut tx, account.id, &[blob]).await.unwrap();
    store::deploys::update_uploaded(&mut tx, account.id, id, settled[0].id).await.unwrap();
    let young = new_id();
    store::deploys::insert_deploy(&mut tx, account.id, young, 3, ("a key", None), now()).await.unwrap();
    store::commit(tx).await.unwrap();
    let running = account.run(&[]).await;
    until(async || account.blobs.files().is_empty()).await;
    running.stop().await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    assert!(store::deploys::find_deploy(&mut conn, account.id, id).await.unwrap().is_none());
    assert!(store::deploys::find_deploy(&mut conn, account.id, young).await.unwrap().is_some());
}

#[tokio::test]
async fn bytes_of_an_announced_file_stay_until_its_deploy_is_abandoned() {
    let account = Account::new().await;
    let announce = async |hours: i64, files: &[&[u8]]| {
        let (id, created_at) = (new_id(), now() - TimeDelta::hours(hours));
        let blobs: Vec<NewBlob> = files.iter().map(|bytes| account.put(bytes)).collect();
        let mut tx = store::begin(&account.database.db).await.unwrap();
        store::deploys::insert_deploy(&mut tx, account.id, id, 0, ("a test", None), created_at)
            .await
            .unwrap();
        store::deploys::sources::update_announced(&mut tx, account.id, id, true).await.unwrap();
        let settled = store::blobs::reference_blobs(&mut tx, account.id, &blobs).await.unwrap();
        let source = |blob: &NewBlob| NewSource {
            path: format!("{}.js", hex::encode(blob.sha256)),
            sha256: blob.sha256,
            size_bytes: blob.size_bytes,
            blob_id: settled.iter().find(|other| other.sha256 == blob.sha256).map(|other| other.id),
        };
        let sources: Vec<NewSource> = blobs.iter().map(source).collect();
        store::deploys::sources::insert_sources(&mut tx, account.id, id, &sources).await.unwrap();
        // Whatever else referred to them is gone.
        let ids: Vec<Uuid> = settled.iter().map(|blob| blob.id).collect();
        store::blobs::release_blobs(&mut tx, account.id, &ids, now()).await.unwrap();
        store::commit(tx).await.unwrap();
    };
    announce(1, &[b"in both", b"in one"]).await;
    announce(25, &[b"in both", b"old"]).await;
    announce(26, &[b"old", b"older"]).await;
    assert_eq!(account.blobs.files().len(), 4);
    let running = account.run(&[]).await;
    until(async || account.blobs.files().len() == 2).await;
    let settled = "do $$ begin assert not exists (select from blobs where look_at is not null); end $$";
    until(async || store::execute_raw(&account.database.db, settled).await.is_ok()).await;
    running.stop().await;
    let kept = account.blobs.path().join("kept").join(account.id.to_string());
    for bytes in [b"in both".as_slice(), b"in one"] {
        assert!(kept.join(hex::encode(Sha256::digest(bytes))).exists());
    }
}

#[tokio::test]
async fn an_account_is_deleted_with_its_announced_files() {
    let account = Account::new().await;
    let blob = account.put(b"words");
    let id = new_id();
    let mut tx = store::begin(&account.database.db).await.unwrap();
    store::deploys::insert_deploy(&mut tx, account.id, id, 0, ("a test", None), now()).await.unwrap();
    let settled = store::blobs::reference_blobs(&mut tx, account.id, &[blob]).await.unwrap();
    let source = NewSource {
        path: "a.js".to_owned(),
        sha256: blob.sha256,
        size_bytes: blob.size_bytes,
        blob_id: Some(settled[0].id),
    };
    store::deploys::sources::insert_sources(&mut tx, account.id, id, &[source]).await.unwrap();
    store::commit(tx).await.unwrap();
    account.change("update accounts set claim_deadline = now()").await;
    let running = account.run(&["purge.poll_interval=20ms", "purge.second_pass_after=300ms"]).await;
    until(async || account.blobs.files().is_empty()).await;
    let nothing = "do $$ begin assert not exists (select from deploy_sources); end $$";
    until(async || store::execute_raw(&account.database.db, nothing).await.is_ok()).await;
    running.stop().await;
}

#[tokio::test]
async fn the_row_of_a_form_file_is_deleted_when_its_upload_url_expires_unused() {
    /// The allowance that a small file uses while it is unbound.
    const EACH: i64 = 64 << 10;
    let account = Account::new().await;
    let (form, _) = account.submitted_form().await;
    let presign = async |expires_in: TimeDelta| {
        let new = form_file(form, now());
        let upload = upload(new.id, Purpose::FormFile, expires_in);
        let mut tx = store::begin(&account.database.db).await.unwrap();
        store::form_files::insert_file(&mut tx, account.id, &new).await.unwrap();
        store::uploads::insert_upload(&mut tx, account.id, &upload).await.unwrap();
        store::commit(tx).await.unwrap();
        new.id
    };
    presign(TimeDelta::seconds(-1)).await;
    presign(TimeDelta::hours(1)).await;
    let uploaded = presign(TimeDelta::seconds(-1)).await;
    let blob = account.put(b"words");
    let mut tx = store::begin(&account.database.db).await.unwrap();
    let settled = store::blobs::reference_blobs(&mut tx, account.id, &[blob]).await.unwrap();
    store::form_files::update_blob(&mut tx, account.id, uploaded, settled[0].id).await.unwrap();
    store::uploads::finish_upload(&mut tx, account.id, uploaded, now()).await.unwrap();
    let unbound = store::form_files::lock_unbound(&mut tx, form, &[7]).await.unwrap();
    assert_eq!((unbound.of_form, unbound.of_visitor), (3 * EACH, 3 * EACH));
    store::commit(tx).await.unwrap();
    let running = account.run(&[]).await;
    until(async || {
        let mut tx = store::begin(&account.database.db).await.unwrap();
        let unbound = store::form_files::lock_unbound(&mut tx, form, &[7]).await.unwrap();
        (unbound.of_form, unbound.of_visitor) == (2 * EACH, 2 * EACH)
    })
    .await;
    running.stop().await;
    assert_eq!(account.blobs.files().len(), 1);
}

#[tokio::test]
async fn an_unbound_form_file_is_deleted_with_its_bytes_after_a_day() {
    let account = Account::new().await;
    let (form, submission) = account.submitted_form().await;
    let upload = async |hours: i64, submission: Option<Uuid>| {
        let new = form_file(form, now() - TimeDelta::hours(hours));
        let id = new.id;
        let blob = account.put(format!("words of {hours} hours").as_bytes());
        let mut tx = store::begin(&account.database.db).await.unwrap();
        store::form_files::insert_file(&mut tx, account.id, &new).await.unwrap();
        let settled = store::blobs::reference_blobs(&mut tx, account.id, &[blob]).await.unwrap();
        assert!(store::form_files::update_blob(&mut tx, account.id, id, settled[0].id).await.unwrap());
        if let Some(submission) = submission {
            let bound =
                store::form_files::bind(&mut tx, account.id, (form, submission), ("photo", id), false);
            assert_eq!(bound.await.unwrap(), Some(5));
        }
        store::commit(tx).await.unwrap();
    };
    upload(25, None).await;
    upload(23, None).await;
    upload(48, Some(submission)).await;
    assert_eq!(account.blobs.files().len(), 3);
    let running = account.run(&["garbage_collection.unbound_file_ttl=24h"]).await;
    until(async || account.blobs.files().len() == 2).await;
    running.stop().await;
    let (mut conn, fetched) = (store::acquire(&account.database.db).await.unwrap(), "a.txt");
    let files = store::form_files::list_files(&mut conn, account.id, &[submission]).await.unwrap();
    assert_eq!((files.len(), files[0].filename.as_str()), (1, fetched));
}
