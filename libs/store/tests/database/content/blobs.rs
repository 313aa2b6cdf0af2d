//! References to a blob and the deletion of its bytes are serialized.

use chrono::{DateTime, TimeDelta, Utc};
use sandbox::test::{TestDatabase, database, trial};
use service::{Clock, Rng};
use store::blobs::{
    NewBlob, delete_blob, insert_unreferenced, lock_unreferenced, reference_blobs, release_blobs,
};
use store::deploys::files::{DeployFile, insert_files};
use store::deploys::insert_deploy;
use store::deploys::sources::{NewSource, insert_sources, lock_known};
use uuid::Uuid;

fn now() -> DateTime<Utc> {
    Clock::system().now()
}

fn new_id() -> Uuid {
    Rng::system().uuid_v7(now())
}

async fn account(database: &TestDatabase) -> Uuid {
    let id = new_id();
    trial(database, id, now()).await;
    id
}

fn blob(byte: u8) -> NewBlob {
    NewBlob { id: new_id(), sha256: [byte; 32], size_bytes: 1 }
}

#[tokio::test]
async fn bytes_that_are_never_referenced_become_unreferenced() {
    let database = database().await;
    let account_id = account(&database).await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let until = now() + TimeDelta::hours(1);
    let registered = insert_unreferenced(&mut conn, account_id, &[blob(1), blob(2)], until).await.unwrap();
    assert!(registered.is_empty(), "their bytes can't be stored yet");
    let registered = insert_unreferenced(&mut conn, account_id, &[blob(2), blob(3)], until).await.unwrap();
    assert_eq!(registered, [[2; 32]].into());
    assert_eq!(lock_unreferenced(&mut conn, now()).await.unwrap(), None, "not yet");
    let settled = reference_blobs(&mut conn, account_id, &[blob(2), blob(3)]).await.unwrap();
    assert!(settled.iter().all(|blob| !blob.is_new), "their rows existed");
    let later = until + TimeDelta::seconds(1);
    let unneeded = lock_unreferenced(&mut conn, later).await.unwrap().unwrap();
    assert_eq!((unneeded.account_id, unneeded.sha256), (account_id, [1; 32]));
    delete_blob(&mut conn, account_id, unneeded.id).await.unwrap();
    assert_eq!(lock_unreferenced(&mut conn, later).await.unwrap(), None, "the others are referenced");
}

#[tokio::test]
async fn equal_bytes_of_two_accounts_are_separate_blobs() {
    let database = database().await;
    let (mine, theirs) = (account(&database).await, account(&database).await);
    let mut conn = store::acquire(&database.db).await.unwrap();
    let first = reference_blobs(&mut conn, mine, &[blob(1)]).await.unwrap()[0];
    let second = reference_blobs(&mut conn, theirs, &[blob(1)]).await.unwrap()[0];
    assert!(first.is_new && second.is_new && first.id != second.id);
    let again = reference_blobs(&mut conn, mine, &[blob(1)]).await.unwrap()[0];
    assert_eq!((again.id, again.is_new), (first.id, false));
    release_blobs(&mut conn, theirs, &[first.id], now()).await.unwrap();
    assert_eq!(
        lock_unreferenced(&mut conn, now()).await.unwrap(),
        None,
        "a blob of another account is never released"
    );
}

#[tokio::test]
async fn an_upload_that_races_the_deletion_of_its_bytes_must_store_them_again() {
    let database = database().await;
    let account_id = account(&database).await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let old = reference_blobs(&mut conn, account_id, &[blob(1)]).await.unwrap()[0];
    release_blobs(&mut conn, account_id, &[old.id], now()).await.unwrap();

    let mut sweep = store::begin(&database.db).await.unwrap();
    assert!(lock_unreferenced(&mut sweep, now()).await.unwrap().is_some());
    let db = database.db.clone();
    let upload = tokio::spawn(async move {
        let mut tx = store::begin(&db).await.unwrap();
        let settled = reference_blobs(&mut tx, account_id, &[blob(1)]).await.unwrap();
        store::commit(tx).await.unwrap();
        settled[0]
    });
    // It waits for the garbage collection, which holds the row until the bytes are gone.
    let waits = "do $$ begin perform from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock'; if not found then raise 'no waiting session'; end if; end $$";
    sandbox::test::until(async || store::execute_raw(&database.db, waits).await.is_ok()).await;
    delete_blob(&mut sweep, account_id, old.id).await.unwrap();
    store::commit(sweep).await.unwrap();
    let settled = upload.await.unwrap();
    assert!(settled.is_new && settled.id != old.id);
}

#[tokio::test]
async fn a_deletion_after_an_upload_keeps_its_bytes() {
    let database = database().await;
    let account_id = account(&database).await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let old = reference_blobs(&mut conn, account_id, &[blob(1)]).await.unwrap()[0];
    release_blobs(&mut conn, account_id, &[old.id], now()).await.unwrap();
    let mut upload = store::begin(&database.db).await.unwrap();
    reference_blobs(&mut upload, account_id, &[blob(1)]).await.unwrap();
    assert_eq!(lock_unreferenced(&mut conn, now()).await.unwrap(), None, "the upload holds its lock");
    store::commit(upload).await.unwrap();
    assert_eq!(lock_unreferenced(&mut conn, now()).await.unwrap(), None, "it is referenced again");
}

/// Creates a deploy with one file of these bytes and returns the id of their blob.
async fn deploy_of(database: &TestDatabase, account_id: Uuid, blob: NewBlob) -> Result<Uuid, store::Error> {
    let mut tx = store::begin(&database.db).await?;
    let id = new_id();
    insert_deploy(&mut tx, account_id, id, 1, ("a test", None), now()).await?;
    let blob_id = reference_blobs(&mut tx, account_id, &[blob]).await?[0].id;
    let file = DeployFile {
        path: "a.js".to_owned(),
        blob_id,
        size_bytes: 1,
        content_type: "text/javascript".to_owned(),
        by_content: false,
        reason: None,
        title: None,
    };
    insert_files(&mut tx, account_id, id, &[file]).await?;
    store::commit(tx).await?;
    Ok(blob_id)
}

#[tokio::test]
async fn a_file_that_is_released_while_it_is_announced_stays_stored() {
    let database = database().await;
    let account_id = account(&database).await;
    let old = deploy_of(&database, account_id, blob(1)).await.unwrap();
    let mut release = store::begin(&database.db).await.unwrap();
    sqlx::query("delete from deploy_files").execute(&mut *release).await.unwrap();
    release_blobs(&mut release, account_id, &[old], now()).await.unwrap();
    let db = database.db.clone();
    let announce = tokio::spawn(async move {
        let mut tx = store::begin(&db).await.unwrap();
        let known = lock_known(&mut tx, account_id, &[[1; 32]], None).await.unwrap();
        let id = new_id();
        insert_deploy(&mut tx, account_id, id, 0, ("a test", None), now()).await.unwrap();
        let (path, sha256, blob_id) = ("b.js".to_owned(), [1; 32], Some(known[0].id));
        insert_sources(&mut tx, account_id, id, &[NewSource { path, sha256, size_bytes: 1, blob_id }])
            .await
            .unwrap();
        tx
    });
    // It waits for the release, which holds the row of the blob.
    let waits = "do $$ begin perform from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock'; if not found then raise 'no waiting session'; end if; end $$";
    sandbox::test::until(async || store::execute_raw(&database.db, waits).await.is_ok()).await;
    store::commit(release).await.unwrap();
    let announced = announce.await.unwrap();
    let mut conn = store::acquire(&database.db).await.unwrap();
    assert_eq!(lock_unreferenced(&mut conn, now()).await.unwrap(), None, "the announcement holds its lock");
    store::commit(announced).await.unwrap();
    assert_eq!(lock_unreferenced(&mut conn, now()).await.unwrap(), None, "it is referenced again");
}

#[tokio::test]
async fn only_files_of_deploys_of_the_same_account_are_known() {
    let database = database().await;
    let (mine, theirs) = (account(&database).await, account(&database).await);
    let own = deploy_of(&database, mine, blob(1)).await.unwrap();
    deploy_of(&database, theirs, blob(2)).await.unwrap();
    let mut conn = store::acquire(&database.db).await.unwrap();
    reference_blobs(&mut conn, mine, &[blob(3)]).await.unwrap();
    let digests = [[1; 32], [2; 32], [3; 32]];
    let known = lock_known(&mut conn, mine, &digests, None).await.unwrap();
    assert_eq!(known.iter().map(|blob| blob.id).collect::<Vec<_>>(), [own]);
    for sites in [vec![], vec![new_id()]] {
        assert_eq!(lock_known(&mut conn, mine, &digests, Some(&sites)).await.unwrap(), []);
    }
}
