//! One test suite, run over a folder and over a real S3 server.

#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

use std::time::{Duration, SystemTime};

use blobs::{Blobs, Config, Name};
use bytes::Bytes;
use futures::TryStreamExt;
use sandbox::s3::S3;
use sandbox::test::{eventually, folder};
use sha2::{Digest, Sha256};
use uuid::Uuid;

const ACCOUNT: Uuid = Uuid::from_u128(1);
const OTHER_ACCOUNT: Uuid = Uuid::from_u128(2);

fn config(url: &str) -> Config {
    Config {
        url: url.to_owned(),
        endpoint: String::new(),
        region: "us-east-1".to_owned(),
        key_id: String::new(),
        secret: String::new().into(),
        path_style: true,
    }
}

fn in_s3(s3: &S3, secret: &str) -> Blobs {
    let config = Config {
        endpoint: s3.endpoint(),
        key_id: S3::KEY_ID.to_owned(),
        secret: secret.to_owned().into(),
        ..config(&format!("s3://{}", S3::BUCKET))
    };
    Blobs::connect(&config).unwrap()
}

fn name(account_id: Uuid, bytes: &[u8]) -> Name {
    Name { account_id, sha256: Sha256::digest(bytes).into() }
}

async fn read(blobs: &Blobs, name: Name, range: std::ops::Range<u64>) -> Vec<u8> {
    let parts: Vec<Bytes> = blobs.read(name, range).await.unwrap().try_collect().await.unwrap();
    parts.concat()
}

/// Checks the behaviour that both stores share.
async fn suite(blobs: &Blobs) {
    // More than two parts in either store, and not a multiple of their sizes.
    let large: Vec<u8> = (0..20_000_003_u32).map(|n| (n % 251) as u8).collect();
    for (id, bytes) in [(6, b"".as_slice()), (7, b"hello"), (8, &large)] {
        let mut incoming = blobs.receive(ACCOUNT, Uuid::from_u128(id));
        for chunk in bytes.chunks(100_000) {
            incoming.write(Bytes::copy_from_slice(chunk)).await.unwrap();
        }
        let received = incoming.finish().await.unwrap();
        assert_eq!((received.name(), received.size()), (name(ACCOUNT, bytes), bytes.len() as u64));
        assert!(!blobs.contains(received.name()).await.unwrap(), "it can't be read before it is stored");
        blobs.store(&received).await.unwrap();
        blobs.store(&received).await.unwrap();
        let size = bytes.len() as u64;
        assert!(read(blobs, received.name(), 0..size).await == bytes, "{size} bytes are read back");
    }
    let stored = name(ACCOUNT, &large);
    assert_eq!(read(blobs, stored, 8_388_600..8_388_620).await, large[8_388_600..8_388_620]);
    assert_eq!(read(blobs, stored, 7..7).await, b"");

    // Equal bytes of another account are another blob.
    assert!(!blobs.contains(name(OTHER_ACCOUNT, b"hello")).await.unwrap());
    blobs.put(name(OTHER_ACCOUNT, b"hello"), Bytes::from_static(b"hello")).await.unwrap();
    blobs.delete(name(OTHER_ACCOUNT, b"hello")).await.unwrap();
    blobs.delete(name(OTHER_ACCOUNT, b"hello")).await.unwrap();
    assert!(blobs.contains(name(ACCOUNT, b"hello")).await.unwrap());
    let absent = blobs.read(name(OTHER_ACCOUNT, b"hello"), 0..5).await;
    assert!(absent.is_err_and(|error| error.is_not_found()));

    // Several at once, of which one is stored already.
    let several = [(ACCOUNT, b"hello"), (OTHER_ACCOUNT, b"first"), (OTHER_ACCOUNT, b"other")];
    let named = several.map(|(id, bytes)| (name(id, bytes), Bytes::from_static(bytes)));
    blobs.put_all(named.to_vec()).await.unwrap();
    for (name, bytes) in named {
        assert_eq!(read(blobs, name, 0..5).await, bytes);
    }
    for bytes in [b"first", b"other"] {
        blobs.delete(name(OTHER_ACCOUNT, bytes)).await.unwrap();
    }

    // Uploads that are dropped unfinished or unstored are deleted.
    blobs.put(name(OTHER_ACCOUNT, b"x"), Bytes::from_static(b"x")).await.unwrap();
    let mut unfinished = blobs.receive(OTHER_ACCOUNT, Uuid::from_u128(10));
    unfinished.write(Bytes::from(large.clone())).await.unwrap();
    drop(unfinished);
    let mut unstored = blobs.receive(OTHER_ACCOUNT, Uuid::from_u128(11));
    unstored.write(Bytes::from_static(b"unstored")).await.unwrap();
    drop(unstored.finish().await.unwrap());
    let later = SystemTime::from(service::Clock::system().now()) + Duration::from_secs(60);
    eventually(async || (blobs.delete_orphans(later).await.unwrap() == 0).then_some(())).await;

    // Deleting an account deletes all its blobs and uploads and no other account's.
    let mut orphan = blobs.receive(ACCOUNT, Uuid::from_u128(12));
    orphan.write(Bytes::from_static(b"orphan")).await.unwrap();
    std::mem::forget(orphan.finish().await.unwrap());
    assert_eq!(blobs.delete_account(ACCOUNT).await.unwrap(), 4);
    assert_eq!(blobs.delete_account(ACCOUNT).await.unwrap(), 0);
    assert!(!blobs.contains(stored).await.unwrap());
    assert!(blobs.contains(name(OTHER_ACCOUNT, b"x")).await.unwrap());

    // An orphan is deleted once it is old enough, not before.
    let mut orphan = blobs.receive(ACCOUNT, Uuid::from_u128(13));
    orphan.write(Bytes::from_static(b"orphan")).await.unwrap();
    std::mem::forget(orphan.finish().await.unwrap());
    assert_eq!(blobs.delete_orphans(later - Duration::from_secs(3_600)).await.unwrap(), 0);
    assert_eq!(blobs.delete_orphans(later).await.unwrap(), 1);
}

/// Two edges that share a folder scan it at the same time, so each finds files that the other has just deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_scans_for_orphans_delete_each_once() {
    let folder = folder();
    let blobs = Blobs::connect(&config(folder.path().to_str().unwrap())).unwrap();
    for id in 0..1_000 {
        let mut orphan = blobs.receive(ACCOUNT, Uuid::from_u128(id));
        orphan.write(Bytes::from_static(b"orphan")).await.unwrap();
        std::mem::forget(orphan.finish().await.unwrap());
    }
    let later = SystemTime::from(service::Clock::system().now()) + Duration::from_secs(60);
    let (first, second) = futures::join!(blobs.delete_orphans(later), blobs.delete_orphans(later));
    assert_eq!(first.unwrap() + second.unwrap(), 1_000);
    assert_eq!(folder.files(), Vec::<String>::new());
}

#[tokio::test]
async fn a_folder_stores_blobs() {
    let folder = folder();
    suite(&Blobs::connect(&config(folder.path().to_str().unwrap())).unwrap()).await;
    let remaining = format!("kept/{OTHER_ACCOUNT}/{}", hex::encode(name(OTHER_ACCOUNT, b"x").sha256));
    assert_eq!(folder.files(), [remaining], "no other file is left, also of unfinished uploads");
    let again = Blobs::connect(&config(&format!("file://{}", folder.path().display()))).unwrap();
    assert!(again.contains(name(OTHER_ACCOUNT, b"x")).await.unwrap());
}

#[tokio::test]
async fn an_s3_bucket_stores_blobs() {
    let s3 = S3::start().await.unwrap();
    suite(&in_s3(&s3, S3::SECRET)).await;
}

#[tokio::test]
async fn s3_refuses_a_wrong_key() {
    let s3 = S3::start().await.unwrap();
    let with_wrong_key = in_s3(&s3, "another-secret");
    let put = with_wrong_key.put(name(ACCOUNT, b"x"), Bytes::from_static(b"x")).await;
    assert!(put.is_err());
    assert!(!in_s3(&s3, S3::SECRET).contains(name(ACCOUNT, b"x")).await.unwrap());
}

#[tokio::test]
async fn an_unreachable_store_is_unavailable() {
    use domain::Transient;
    let unreachable = Config {
        endpoint: "http://127.0.0.1:1".to_owned(),
        key_id: S3::KEY_ID.to_owned(),
        ..config("s3://bucket")
    };
    let Err(error) = Blobs::connect(&unreachable).unwrap().contains(name(ACCOUNT, b"x")).await else {
        panic!("nothing listens there")
    };
    assert!(error.is_transient(), "{error}");
}

#[test]
fn several_edges_need_a_bucket() {
    for url in ["/var/lib/blobs", "file:///var/lib/blobs"] {
        assert!(config(url).check(1).is_ok(), "{url}");
        assert_eq!(
            config(url).check(2).unwrap_err().to_string(),
            format!(
                "blobs.url: `{url}` is a folder, which 2 edges (http.edges) can't share: use s3://bucket"
            )
        );
    }
    assert!(config("s3://bucket").check(2).is_ok());
}

#[test]
fn a_url_that_is_neither_a_folder_nor_a_bucket_is_refused() {
    for url in ["", "http://x.test/y", "gs://bucket"] {
        assert!(Blobs::connect(&config(url)).is_err(), "{url}");
    }
}
