//! The asset host: whole files and ranges, cached and streamed. It never serves active content.

use http::{Method, StatusCode};
use store::accounts;

use crate::fixtures::now;
use crate::harness::Edge;

const HOST: &str = "assets.localhost";

#[tokio::test]
async fn an_asset_is_cacheable_and_supports_ranges() {
    let edge = Edge::start().await;
    let owner = edge.account("quiet-otter").await;
    let large: Vec<u8> = (0..700_000_u32).map(|n| (n % 253) as u8).collect();
    for bytes in [b"0123456789".as_slice(), &large] {
        let path = owner.stored_asset("a.bin", "application/octet-stream", bytes).await.asset_path;
        let whole = edge.visitor.get(HOST, &path).await;
        assert_eq!((whole.status, whole.body.as_ref()), (StatusCode::OK, bytes));
        assert_eq!(whole.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(whole.header("accept-ranges"), "bytes");
        assert_eq!(whole.header("x-content-type-options"), "nosniff");
        assert_eq!(whole.header("access-control-allow-origin"), "*");
        assert!(whole.header("content-security-policy").contains("sandbox"));
        let etag = whole.header("etag").to_owned();
        assert!(etag.starts_with('"'), "strong: {etag}");

        let get =
            async |headers: &[(&str, &str)]| edge.visitor.send(Method::GET, HOST, &path, headers, "").await;
        let again = get(&[("if-none-match", &etag)]).await;
        assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0));
        let part = get(&[("range", "bytes=2-5")]).await;
        assert_eq!((part.status, part.body.as_ref()), (StatusCode::PARTIAL_CONTENT, &bytes[2..6]));
        assert_eq!(part.header("content-range"), format!("bytes 2-5/{}", bytes.len()));
        let end = get(&[("range", "bytes=-3"), ("if-range", &etag)]).await;
        assert_eq!((end.status, end.body.as_ref()), (StatusCode::PARTIAL_CONTENT, &bytes[bytes.len() - 3..]));
        let other = get(&[("range", "bytes=2-5"), ("if-range", "\"other\"")]).await;
        assert_eq!((other.status, other.body.len()), (StatusCode::OK, bytes.len()));
        let behind = get(&[("range", "bytes=700000-")]).await;
        assert_eq!(behind.status, StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(behind.header("content-range"), format!("bytes */{}", bytes.len()));

        let head = edge.visitor.send(Method::HEAD, HOST, &path, &[], "").await;
        assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
        assert_eq!(head.header("content-length"), bytes.len().to_string());
    }
}

#[tokio::test]
async fn the_asset_host_never_serves_active_content() {
    let edge = Edge::start().await;
    let owner = edge.account("quiet-otter").await;
    for (name, kind, served_type, is_attachment) in [
        ("a.html", "text/html", "text/plain; charset=utf-8", true),
        ("a.js", "text/javascript", "text/plain; charset=utf-8", true),
        ("old.js", "text/jscript", "text/plain; charset=utf-8", true),
        ("older.js", "text/javascript1.2", "text/plain; charset=utf-8", true),
        ("a.xml", "application/xml", "text/plain; charset=utf-8", true),
        ("a.xhtml", "application/xhtml+xml", "text/plain; charset=utf-8", true),
        ("a.svg", "image/svg+xml", "image/svg+xml", false),
        ("a.css", "text/css", "text/css; charset=utf-8", false),
        ("ü b.png", "image/png", "image/png", false),
    ] {
        let path = owner.stored_asset(name, kind, format!("{name}{kind}").as_bytes()).await.asset_path;
        let response = edge.visitor.get(HOST, &path).await;
        assert_eq!(
            (response.status, response.header("content-type")),
            (StatusCode::OK, served_type),
            "{name}"
        );
        let disposition = response.header("content-disposition");
        assert_eq!(disposition.starts_with("attachment"), is_attachment, "{name}: {disposition}");
        let policy = response.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
    }
    let response = edge.visitor.send(Method::POST, HOST, "/x", &[], "").await;
    assert_eq!((response.status, response.header("allow")), (StatusCode::METHOD_NOT_ALLOWED, "GET, HEAD"));
    for nothing in ["/", "/x", "/x/y", &format!("/{}/a.png", "0".repeat(64))] {
        assert_eq!(edge.visitor.get(HOST, nothing).await.status, StatusCode::NOT_FOUND, "{nothing}");
    }
}

#[tokio::test]
async fn suspended_and_deleted_assets_are_not_served() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let owner = edge.account("quiet-otter").await;
    let asset = owner.stored_asset("a.txt", "text/plain", b"words").await;
    let wait_for_status = async |status: u16| {
        edge.get_until(HOST, &asset.asset_path, |response| response.status.as_u16() == status).await;
    };
    wait_for_status(200).await;
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    accounts::suspend(&mut conn, owner.id, None, now()).await.unwrap();
    edge.relay_outbox().await;
    wait_for_status(451).await;
    accounts::resume(&mut conn, owner.id, now()).await.unwrap();
    edge.relay_outbox().await;
    wait_for_status(200).await;
    store::assets::delete_asset(&mut conn, owner.id, asset.id).await.unwrap();
    let gone = contract::Change::Asset { asset_id: asset.id };
    edge.bus.publish(&contract::Signal::Changed(gone)).await.unwrap();
    wait_for_status(404).await;
}

#[tokio::test]
async fn a_cached_small_asset_is_served_without_postgres() {
    let edge = Edge::start().await;
    let owner = edge.account("quiet-otter").await;
    let asset = owner.stored_asset("a.txt", "text/plain", b"words").await;
    edge.visitor.get(HOST, &asset.asset_path).await;
    edge.postgres.cut();
    assert_eq!(edge.visitor.get(HOST, &asset.asset_path).await.text(), "words");
    let unknown = format!("/{}/a.txt", uuid::Uuid::from_u128(3));
    assert_eq!(edge.visitor.get(HOST, &unknown).await.status, StatusCode::SERVICE_UNAVAILABLE);
}
