//! No call reaches an internal host: not by name, by DNS rebinding, by redirect or by proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::response::Redirect;
use axum::routing::get as on_get;
use outbound::address::NotPublic;
use outbound::{Client, Error, Refusal};

use crate::support::{SECRET, Script, class, config, get, get_at, local, serve};

/// A public address for the guard, to which no machine has a route.
const PUBLIC: &str = "64:ff9b::192.31.196.1";

/// Starts a server that counts its requests.
async fn counting_server() -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let app = Router::new().fallback(move || async move {
        counted.fetch_add(1, Ordering::SeqCst);
        "inside"
    });
    (serve(app).await, requests)
}

fn scripted(allow: &[&str], script: &Script) -> Client {
    Client::with_resolver(config(allow), script.clone()).unwrap()
}

async fn refusal(client: &Client, url: &str) -> Option<NotPublic> {
    match client.send(get(url)).await {
        Err(Error::RefusedTarget { reason: Refusal::Address(kind) }) => Some(kind),
        _ => None,
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_an_internal_address_is_refused_and_not_called() {
    let (inside, requests) = counting_server().await;
    let script = Script::new(&[&["127.0.0.1"], &["10.1.2.3"], &["169.254.169.254"], &["::1"], &["fd00::1"]]);
    let client = scripted(&[], &script);
    let url = format!("https://hooks.example:{}/{SECRET}", inside.port());
    let expected = [
        NotPublic::Loopback,
        NotPublic::Private,
        NotPublic::Metadata,
        NotPublic::Loopback,
        NotPublic::Private,
    ];
    for kind in expected {
        assert_eq!(refusal(&client, &url).await, Some(kind));
    }
    assert_eq!(requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn one_internal_address_among_several_refuses_the_target() {
    let client = scripted(&[], &Script::new(&[&[PUBLIC, "8.8.8.8", "192.168.0.1"]]));
    assert_eq!(refusal(&client, "https://hooks.example").await, Some(NotPublic::Private));
}

#[tokio::test]
async fn a_name_that_resolves_differently_after_the_check_gains_nothing() {
    let (inside, requests) = counting_server().await;
    let script = Script::new(&[&[PUBLIC], &["127.0.0.1"]]);
    let client = scripted(&[], &script);
    let url = format!("https://hooks.example:{}/", inside.port());
    // The connection uses the checked addresses: the name is not resolved a second time.
    assert_eq!(class(client.send(get(&url)).await), "connect");
    assert_eq!(script.left(), 1);
    // The next call resolves it again and checks the result.
    assert_eq!(refusal(&client, &url).await, Some(NotPublic::Loopback));
    assert_eq!(requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_connection_of_an_allowed_name_is_not_reused_for_another() {
    let (inside, requests) = counting_server().await;
    let script = Script::new(&[&["127.0.0.1"], &["127.0.0.1"]]);
    let port = inside.port();
    let client = scripted(&[&format!("hooks.internal:{port}")], &script);
    let allowed = client.send(get(format!("http://hooks.internal:{port}/"))).await.unwrap();
    assert_eq!((allowed.status.as_u16(), &allowed.body[..]), (200, &b"inside"[..]));
    assert_eq!(refusal(&client, &format!("https://other.internal:{port}/")).await, Some(NotPublic::Loopback));
    assert_eq!(
        class(client.send(get(format!("http://hooks.internal:{}/", port ^ 1))).await),
        "refused_target"
    );
    assert_eq!(requests.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_allowed_network_allows_names_that_resolve_into_it_and_no_others() {
    let script = Script::new(&[&["127.0.0.1"], &["127.0.0.1", "10.0.0.1"]]);
    let client = scripted(&["127.0.0.0/8"], &script);
    // The guard allowed it, and nothing listens there.
    assert_eq!(class(client.send(get("https://hooks.example:1/")).await), "connect");
    assert_eq!(refusal(&client, "https://hooks.example:1/").await, Some(NotPublic::Private));
}

#[tokio::test]
async fn a_redirect_is_returned_and_not_followed() {
    let (inside, requests) = counting_server().await;
    let to = format!("http://{inside}/");
    let location = to.clone();
    let redirecting =
        serve(Router::new().fallback(on_get(move || async move { Redirect::temporary(&to) }))).await;
    let response = local().send(get_at(redirecting)).await.unwrap();
    assert_eq!(response.status.as_u16(), 307);
    assert_eq!(response.headers["location"], location);
    assert_eq!(requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_proxy_in_the_environment_is_not_used() {
    let (proxy, requests) = counting_server().await;
    let child = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "calls::a_request_and_its_response_arrive_unchanged"])
        .envs(
            ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"]
                .map(|name| (name, format!("http://{proxy}"))),
        )
        .output()
        .await
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && output.contains("1 passed"), "{output}");
    assert_eq!(requests.load(Ordering::SeqCst), 0);
}
