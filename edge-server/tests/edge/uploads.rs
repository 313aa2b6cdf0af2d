//! Uploads: an announced upload is accepted once, and rejected bytes are not stored.

use http::{Method, StatusCode};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::TestResponse;
use crate::fixtures::AssetFixture;
use crate::harness::Edge;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01";

async fn put(edge: &Edge, address: &str, bytes: &[u8]) -> TestResponse {
    edge.visitor.send(Method::PUT, "localhost", address, &[], bytes.to_vec()).await
}

#[tokio::test]
async fn an_upload_is_available_at_once_and_accepted_once() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let owner = edge.account("quiet-otter").await;
    let AssetFixture { address, asset_path, .. } = owner.asset("a.png", "image/png", PNG.len()).await;
    assert_eq!(edge.visitor.get("assets.localhost", &asset_path).await.status, StatusCode::NOT_FOUND);
    let response = put(&edge, &address, PNG).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.text());
    assert_eq!(response.header("access-control-allow-origin"), "*");
    let digest = hex::encode(Sha256::digest(PNG));
    assert_eq!(
        (&response.json()["sizeBytes"], &response.json()["sha256"]),
        (&Value::from(PNG.len()), &Value::from(digest.clone()))
    );
    let response = edge.visitor.get("assets.localhost", &asset_path).await;
    assert_eq!((response.status, response.body.as_ref()), (StatusCode::OK, PNG));
    assert_eq!(edge.blobs.files(), [format!("kept/{}/{digest}", owner.id)]);
    put(&edge, &address, PNG).await.problem(409, "conflict");
}

#[tokio::test]
async fn rejects_unsigned_upload_urls() {
    let edge = Edge::start().await;
    let owner = edge.account("quiet-otter").await;
    let asset = owner.asset("a.png", "image/png", PNG.len()).await;
    let other = owner.asset("b.png", "image/png", PNG.len()).await;
    let of_other = asset.address.replace(&asset.id.to_string(), &other.id.to_string());
    let larger = asset.address.replace(&format!("size={}", PNG.len()), "size=999");
    let longer = asset.address.replace("expires=", "expires=9");
    let bare = asset.address.split('?').next().unwrap();
    for forged in [of_other.as_str(), &larger, &longer, bare, &format!("{}x", asset.address)] {
        put(&edge, forged, PNG).await.problem(403, "forbidden");
    }
    let late = owner.upload(asset.id, PNG.len(), -1);
    put(&edge, &late, PNG).await.problem(403, "forbidden");
    let gone = owner.upload(uuid::Uuid::from_u128(5), PNG.len(), 60);
    put(&edge, &gone, PNG).await.problem(404, "not_found");
    assert!(edge.blobs.files().is_empty());
}

#[tokio::test]
async fn an_upload_that_differs_from_its_announcement_is_not_stored() {
    let edge = Edge::start().await;
    let owner = edge.account("quiet-otter").await;
    let large = [PNG, &[0; 3 << 20]].concat();
    for (size, sent, status, code) in [
        (PNG.len(), large.as_slice(), 413, "payload_too_large"),
        (PNG.len() + 1, PNG, 400, "validation_failed"),
        (5, b"hello", 400, "validation_failed"),
        (large.len(), &large[..2 << 20], 400, "validation_failed"),
    ] {
        let asset = owner.asset("a.png", "image/png", size).await;
        put(&edge, &asset.address, sent).await.problem(status, code);
        assert_eq!(
            edge.visitor.get("assets.localhost", &asset.asset_path).await.status,
            StatusCode::NOT_FOUND
        );
    }
    let page = owner.asset("a.txt", "text/plain", 22).await;
    let problem =
        put(&edge, &page.address, b"<script>alert</script>").await.problem(400, "validation_failed");
    assert!(problem["detail"].as_str().unwrap().contains("text/html"), "{problem}");
    let files = sandbox::test::eventually(async || Some(edge.blobs.files()).filter(Vec::is_empty)).await;
    assert!(files.is_empty());
}

#[tokio::test]
async fn a_chunked_upload_stops_at_its_announced_size() {
    let edge = Edge::start().await;
    let owner = edge.account("quiet-otter").await;
    let asset = owner.asset("a.png", "image/png", PNG.len()).await;
    let chunk = format!("400\r\n{}\r\n", "x".repeat(0x400));
    let request = format!(
        "PUT {} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n{}",
        asset.address,
        chunk.repeat(4)
    );
    let response = edge.visitor.raw(request.as_bytes()).await;
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
    sandbox::test::until(async || edge.blobs.files().is_empty()).await;
}

#[tokio::test]
async fn an_aborted_or_stalled_upload_leaves_no_bytes_and_can_be_retried() {
    let edge = Edge::with(&["uploads.stall_timeout=200ms"]).await;
    let owner = edge.account("quiet-otter").await;
    let large = [PNG, &[0; 4 << 20]].concat();
    let asset = owner.asset("a.png", "image/png", large.len()).await;
    let head = format!(
        "PUT {} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        asset.address,
        large.len()
    );
    let mut broken = edge.visitor.connect().await;
    broken.write_all(head.as_bytes()).await.unwrap();
    broken.write_all(&large[..2 << 20]).await.unwrap();
    drop(broken);
    let mut slow = edge.visitor.connect().await;
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(&large[..2 << 20]).await.unwrap();
    let mut response = vec![0; 12];
    slow.read_exact(&mut response).await.unwrap();
    assert_eq!(response, b"HTTP/1.1 408");
    sandbox::test::until(async || edge.blobs.files().is_empty()).await;
    assert_eq!(put(&edge, &asset.address, &large).await.status, StatusCode::OK);
    assert_eq!(edge.visitor.get("assets.localhost", &asset.asset_path).await.body, large);
}

#[tokio::test]
async fn only_one_of_two_concurrent_uploads_is_accepted() {
    let edge = Edge::start().await;
    let owner = edge.account("quiet-otter").await;
    let asset = owner.asset("a.png", "image/png", PNG.len()).await;
    let both = tokio::join!(put(&edge, &asset.address, PNG), put(&edge, &asset.address, PNG));
    let mut statuses = [both.0.status.as_u16(), both.1.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    sandbox::test::until(async || edge.blobs.files().len() == 1).await;
}

#[tokio::test]
async fn a_suspended_account_cannot_upload_and_cors_allows_any_origin() {
    let edge = Edge::start().await;
    let owner = edge.account("quiet-otter").await;
    let asset = owner.asset("a.png", "image/png", PNG.len()).await;
    let response = edge.visitor.send(Method::OPTIONS, "localhost", &asset.address, &[], "").await;
    assert_eq!(response.status, StatusCode::NO_CONTENT);
    assert_eq!(response.header("access-control-allow-origin"), "*");
    assert_eq!(response.header("access-control-allow-methods"), "PUT");
    edge.run("update accounts set suspended_at = now()").await;
    put(&edge, &asset.address, PNG).await.problem(403, "suspended");
}

#[tokio::test]
async fn a_zip_is_stored_for_its_deploy() {
    let edge = Edge::start().await;
    let owner = edge.account("quiet-otter").await;
    let zip = b"PK\x03\x04 and so on";
    let id = owner.deploy(zip.len()).await;
    let address = owner.upload(id, zip.len(), 60);
    assert_eq!(put(&edge, &address, zip).await.status, StatusCode::OK);
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    let deploy = store::deploys::find_deploy(&mut conn, owner.id, id).await.unwrap().unwrap();
    assert_eq!(deploy.status.as_str(), "uploaded");
    assert_eq!(deploy.zip.unwrap().1, <[u8; 32]>::from(Sha256::digest(zip)));
}
