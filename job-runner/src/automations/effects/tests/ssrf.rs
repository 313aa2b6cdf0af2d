//! No `fetch` reaches an internal host, and only the base host of this service is called.

use std::net::IpAddr;

use automation::execution::EffectError;
use axum::response::Redirect;
use outbound::{Resolve, Resolving};
use serde_json::{Map, json};

use super::fetch::get;
use super::fixture::{Fixture, call, failure, object};
use super::receiver::Receiver;
use crate::automations::effects::FetchClient;
use crate::automations::effects::fetch::{Fetch, send_with};
use crate::automations::effects::perform;

/// Sends a request that must be refused, and returns the message.
async fn refused(fixture: &Fixture, url: &str) -> String {
    let failed = fixture.failure(get(url)).await;
    assert!(!failed.is_transient, "{url}: {failed:?}");
    assert_eq!(failed.output, None, "{url}");
    failed.message
}

async fn guarded() -> Fixture {
    Fixture::with(&["outbound.allow=[]"]).await
}

#[tokio::test]
async fn the_metadata_service_of_a_cloud() {
    let fixture = guarded().await;
    for url in [
        "https://169.254.169.254/latest/meta-data/",
        "http://169.254.169.254/latest/meta-data/",
        "https://[fd00:ec2::254]/",
        "https://168.63.129.16/",
        "https://2852039166/",
    ] {
        assert!(refused(&fixture, url).await.contains("the URL is refused"), "{url}");
    }
}

#[tokio::test]
async fn localhost_in_every_spelling() {
    let fixture = guarded().await;
    let inside = Receiver::answering(|| "inside").await;
    let port = inside.port;
    for host in [
        "localhost",
        "LOCALHOST",
        "a.localhost",
        "localhost.",
        "127.0.0.1",
        "127.1",
        "127.255.255.254",
        "0",
        "0.0.0.0",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
    ] {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{host}:{port}/");
            assert!(refused(&fixture, &url).await.contains("the URL is refused"), "{url}");
        }
    }
    assert_eq!(inside.count(), 0);
}

#[tokio::test]
async fn private_networks() {
    let fixture = guarded().await;
    for host in [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.0.1",
        "[fd12::1]",
        "[fe80::1]",
        "[::ffff:10.0.0.1]",
        "[::ffff:192.168.0.1]",
        "167772161",
        "0xc0a80001",
    ] {
        let url = format!("https://{host}/");
        assert!(refused(&fixture, &url).await.contains("it resolves to"), "{url}");
    }
}

#[tokio::test]
async fn schemes_that_are_no_web_addresses() {
    let fixture = guarded().await;
    for url in [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "data:text/plain,x",
        "unix:/run/x",
        "//example.com",
    ] {
        refused(&fixture, url).await;
    }
}

#[derive(Clone, Copy)]
struct ResolvesTo(&'static [&'static str]);

impl Resolve for ResolvesTo {
    fn resolve(&self, _host: &str) -> Resolving {
        let addresses: Vec<IpAddr> = self.0.iter().map(|address| address.parse().unwrap()).collect();
        Box::pin(async move { Ok(addresses) })
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address() {
    let fixture = guarded().await;
    let inside = Receiver::answering(|| "inside").await;
    let context = fixture.run().await;
    for addresses in [
        &["127.0.0.1"][..],
        &["10.0.0.1"],
        &["169.254.169.254"],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["93.184.215.14", "127.0.0.1"],
    ] {
        let client =
            FetchClient::with_resolver(Vec::new(), "https://app.example.com", ResolvesTo(addresses)).unwrap();
        let url = format!("https://attacker.example:{}/T0K3N", inside.port);
        let fetch = Fetch { method: "GET", url: &url, headers: &Map::new(), body: None };
        let failed = failure(send_with(&client, &context, &call(get(url.clone())), fetch).await);
        assert!(
            failed.message.starts_with("attacker.example: the URL is refused: it resolves to"),
            "{failed:?}"
        );
        assert!(!failed.is_transient && !failed.message.contains("T0K3N"));
    }
    assert_eq!(inside.count(), 0);
}

#[tokio::test]
async fn a_redirect_to_a_private_address() {
    let inside = Receiver::answering(|| "inside").await;
    let to = inside.origin.clone();
    let redirecting = Receiver::answering(move || Redirect::temporary(&to)).await;
    let fixture = Fixture::with(&[
        &*format!("http.base_url={}", redirecting.origin),
        "http.sites_domain=localhost",
        "outbound.allow=[]",
    ])
    .await;
    let output = fixture.perform(get(redirecting.origin.clone())).await.unwrap();
    assert_eq!((&output["status"], &output["headers"]["location"]), (&json!(307), &json!(inside.origin)));
    assert_eq!(inside.count(), 0);
}

#[tokio::test]
async fn the_base_host_is_called_and_no_other_port_of_its_address() {
    let (base, inside) = (Receiver::answering(|| "base").await, Receiver::answering(|| "inside").await);
    let fixture = Fixture::with(&[
        &*format!("http.base_url={}", base.origin),
        "http.sites_domain=localhost",
        "outbound.allow=[]",
    ])
    .await;
    let output = fixture.perform(get(format!("{}/api/pages", base.origin))).await.unwrap();
    assert_eq!(output["body"], json!("base"));
    // Another program on the same machine.
    assert!(refused(&fixture, &inside.origin).await.contains("the URL is refused"));
    assert!(refused(&fixture, &format!("https://127.0.0.1:{}/", base.port)).await.contains("itself serves"));
    assert_eq!(inside.count(), 0);
    // By name, as in a local stack.
    let named = format!("http://localhost:{}", base.port);
    let fixture = Fixture::with(&[
        &*format!("http.base_url={named}"),
        "http.sites_domain=localhost",
        "outbound.allow=[]",
    ])
    .await;
    assert_eq!(fixture.perform(get(format!("{named}/x"))).await.unwrap()["body"], json!("base"));
    assert!(refused(&fixture, &base.origin).await.contains("itself serves"));
}

#[tokio::test]
async fn forged_headers_of_a_proxy_do_not_reach_the_base_host() {
    let base = Receiver::answering(|| "base").await;
    let fixture = Fixture::with(&[
        &*format!("http.base_url={}", base.origin),
        "http.sites_domain=localhost",
        "outbound.allow=[]",
    ])
    .await;
    let headers = object(json!({
        "X-Forwarded-For": "1.2.3.4", "Forwarded": "for=1.2.3.4", "X-Real-IP": "1.2.3.4", "X-Forwarded-Proto": "https",
        "Authorization": "Bearer key",
    }));
    let url = base.origin.clone();
    let effect = automation::execution::Effect::Fetch { method: "GET", url, headers, body: None };
    fixture.perform(effect).await.unwrap();
    let request = base.received().pop().unwrap();
    for name in ["x-forwarded-for", "forwarded", "x-real-ip", "x-forwarded-proto"] {
        assert_eq!(request.header(name), None, "{name}");
    }
    assert_eq!(request.header("authorization"), Some("Bearer key"));
}

#[tokio::test]
async fn sites_and_verified_domains_of_this_service_are_refused() {
    let receiver = Receiver::answering(|| "site").await;
    let base = format!("http.base_url=http://app.example.com:{}", receiver.port);
    let fixture = Fixture::with(&[&*base, "http.sites_domain=sites.example.net", "outbound.allow=[]"]).await;
    let port = receiver.port;
    let account = fixture.account;
    fixture
        .change(&format!(
            "insert into domains (id, account_id, subdomain_id, domain, dns_status, verified_at, challenge, created_at)
             values (gen_random_uuid(), '{}', '{}', 'shop.example.org', 'verified', now(), 'x', now())",
            account.id, account.site
        ))
        .await;
    for host in ["a.sites.example.net", "shop.example.org", "app.example.com."] {
        let message = refused(&fixture, &format!("https://{host}:{port}/")).await;
        assert!(message.contains("itself serves"), "{host}: {message}");
    }
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn a_loop_over_the_own_api_carries_its_depth() {
    let base = Receiver::answering(|| "base").await;
    let fixture = Fixture::with(&[
        &*format!("http.base_url={}", base.origin),
        "http.sites_domain=localhost",
        "outbound.allow=[]",
    ])
    .await;
    for depth in 0..5 {
        let context = fixture.run_of("http", depth).await;
        let result: Result<_, EffectError> = perform(&context, call(get(base.origin.clone()))).await;
        result.unwrap();
        let request = base.received().pop().unwrap();
        assert_eq!(request.header("webruntime-depth"), Some(&*(depth + 1).to_string()));
    }
}
