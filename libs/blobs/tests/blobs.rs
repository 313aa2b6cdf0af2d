//! The same suite over a folder and over a real S3 server.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::time::{Duration, SystemTime};

use blobs::{Blobs, Config, Name};
use bytes::Bytes;
use futures::TryStreamExt;
use sandbox::s3::S3;
use sandbox::test::{eventually, folder};
use sha2::{Digest, Sha256};
use uuid::Uuid;

const MINE: Uuid = Uuid::from_u128(1);
const THEIRS: Uuid = Uuid::from_u128(2);

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

/// Everything that both kinds of store must do.
async fn suite(blobs: &Blobs) {
    // More than two parts of either kind, and not a whole number of them.
    let large: Vec<u8> = (0..20_000_003_u32).map(|n| (n % 251) as u8).collect();
    for (id, bytes) in [(6, b"".as_slice()), (7, b"hello"), (8, &large)] {
        let mut incoming = blobs.receive(MINE, Uuid::from_u128(id));
        for chunk in bytes.chunks(100_000) {
            incoming.write(Bytes::copy_from_slice(chunk)).await.unwrap();
        }
        let received = incoming.finish().await.unwrap();
        assert_eq!((received.name(), received.size()), (name(MINE, bytes), bytes.len() as u64));
        assert!(!blobs.contains(received.name()).await.unwrap(), "it isn't seen before it is kept");
        blobs.keep(&received).await.unwrap();
        blobs.keep(&received).await.unwrap();
        let size = bytes.len() as u64;
        assert!(read(blobs, received.name(), 0..size).await == bytes, "{size} bytes come back");
    }
    let kept = name(MINE, &large);
    assert_eq!(read(blobs, kept, 8_388_600..8_388_620).await, large[8_388_600..8_388_620]);
    assert_eq!(read(blobs, kept, 7..7).await, b"");

    // The same bytes of another account are other bytes.
    assert!(!blobs.contains(name(THEIRS, b"hello")).await.unwrap());
    blobs.put(name(THEIRS, b"hello"), Bytes::from_static(b"hello")).await.unwrap();
    blobs.delete(name(THEIRS, b"hello")).await.unwrap();
    blobs.delete(name(THEIRS, b"hello")).await.unwrap();
    assert!(blobs.contains(name(MINE, b"hello")).await.unwrap());
    let absent = blobs.read(name(THEIRS, b"hello"), 0..5).await;
    assert!(absent.is_err_and(|error| error.is_absence()));

    // What isn't kept is forgotten, and what isn't finished as well.
    blobs.put(name(THEIRS, b"x"), Bytes::from_static(b"x")).await.unwrap();
    let mut broken = blobs.receive(THEIRS, Uuid::from_u128(10));
    broken.write(Bytes::from(large.clone())).await.unwrap();
    drop(broken);
    let mut unkept = blobs.receive(THEIRS, Uuid::from_u128(11));
    unkept.write(Bytes::from_static(b"unkept")).await.unwrap();
    drop(unkept.finish().await.unwrap());
    let later = SystemTime::from(service::Clock::system().now()) + Duration::from_secs(60);
    eventually(async || (blobs.delete_orphans(later).await.unwrap() == 0).then_some(())).await;

    // An account goes with all it has, and takes nothing of another's along.
    let mut stranded = blobs.receive(MINE, Uuid::from_u128(12));
    stranded.write(Bytes::from_static(b"stranded")).await.unwrap();
    std::mem::forget(stranded.finish().await.unwrap());
    assert_eq!(blobs.delete_account(MINE).await.unwrap(), 4);
    assert_eq!(blobs.delete_account(MINE).await.unwrap(), 0);
    assert!(!blobs.contains(kept).await.unwrap());
    assert!(blobs.contains(name(THEIRS, b"x")).await.unwrap());

    // What was left halfway goes once it is old enough, and not before.
    let mut stranded = blobs.receive(MINE, Uuid::from_u128(13));
    stranded.write(Bytes::from_static(b"stranded")).await.unwrap();
    std::mem::forget(stranded.finish().await.unwrap());
    assert_eq!(blobs.delete_orphans(later - Duration::from_secs(3_600)).await.unwrap(), 0);
    assert_eq!(blobs.delete_orphans(later).await.unwrap(), 1);
}

#[tokio::test]
async fn a_folder_keeps_what_it_is_given() {
    let folder = folder();
    suite(&Blobs::connect(&config(folder.path().to_str().unwrap())).unwrap()).await;
    let theirs = format!("kept/{THEIRS}/{}", hex::encode(name(THEIRS, b"x").sha256));
    assert_eq!(folder.files(), [theirs], "nothing else is left, not even of what broke off");
    let again = Blobs::connect(&config(&format!("file://{}", folder.path().display()))).unwrap();
    assert!(again.contains(name(THEIRS, b"x")).await.unwrap());
}

#[tokio::test]
async fn an_s3_store_keeps_what_it_is_given() {
    let s3 = S3::start().await.unwrap();
    suite(&in_s3(&s3, S3::SECRET)).await;
}

#[tokio::test]
async fn an_s3_store_refuses_a_wrong_key() {
    let s3 = S3::start().await.unwrap();
    let forged = in_s3(&s3, "another-secret");
    let put = forged.put(name(MINE, b"x"), Bytes::from_static(b"x")).await;
    assert!(put.is_err());
    assert!(!in_s3(&s3, S3::SECRET).contains(name(MINE, b"x")).await.unwrap());
}

#[tokio::test]
async fn a_store_that_is_away_is_unavailable() {
    use domain::Fault;
    let nobody = Config { endpoint: "http://127.0.0.1:1".to_owned(), ..config("s3://bucket") };
    let Err(error) = Blobs::connect(&nobody).unwrap().contains(name(MINE, b"x")).await else {
        panic!("nobody answers there")
    };
    assert!(error.is_unavailable(), "{error}");
}

#[test]
fn what_is_neither_a_folder_nor_a_bucket_is_refused() {
    for wrong in ["", "http://x.test/y", "gs://bucket"] {
        assert!(Blobs::connect(&config(wrong)).is_err(), "{wrong}");
    }
}
