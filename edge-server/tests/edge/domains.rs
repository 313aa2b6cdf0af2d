//! Custom domains: a verified domain serves its own site and no other.

use contract::Change;
use http::{Method, StatusCode};

use crate::fixtures::Account;
use crate::harness::Edge;

/// Adds a domain that shows a site.
pub(crate) async fn add(edge: &Edge, site: &Account<'_>, domain: &str, dns_status: &str) {
    edge.run(&format!(
        "insert into domains (id, account_id, subdomain_id, domain, dns_status, verified_at, challenge, created_at)
         values (gen_random_uuid(), '{}', '{}', '{domain}', '{dns_status}',
                 case when '{dns_status}' = 'verified' then now() end, 'x', now())",
        site.id, site.subdomain_id
    ))
    .await;
}

#[tokio::test]
async fn a_verified_domain_serves_its_site() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let (site, other) = (edge.account("quiet-otter").await, edge.account("loud-badger").await);
    site.page("index", "<p>mine").await;
    other.page("index", "<p>other").await;
    let domain = "www.example.com";
    assert_eq!(edge.visitor.get(domain, "/").await.status, StatusCode::NOT_FOUND);
    // Any account may add a domain, but only its verified owner serves it.
    add(&edge, &other, domain, "pending").await;
    add(&edge, &site, domain, "verified").await;
    edge.publish_change(Change::Host { host: domain.to_owned() }).await;
    edge.get_until(domain, "/", |response| response.text() == "<p>mine").await;
    for written in ["WWW.example.com", "www.example.com:8080", "www.example.com."] {
        assert_eq!(edge.visitor.get(written, "/").await.text(), "<p>mine", "{written}");
    }
    assert_eq!(edge.visitor.get(domain, "/").await.header("x-cache"), "hit");
    let map = edge.visitor.get(domain, "/sitemap.xml").await;
    assert!(map.text().contains(&format!("<loc>http://www.example.com:{}/</loc>", edge.port())));
    for stranger in ["example.com", "a.www.example.com", "quiet-otter", "www.example.com.evil.test"] {
        assert_eq!(edge.visitor.get(stranger, "/").await.status, StatusCode::NOT_FOUND, "{stranger}");
    }

    edge.run("delete from domains where dns_status = 'verified'").await;
    edge.publish_change(Change::Host { host: domain.to_owned() }).await;
    edge.get_until(domain, "/", |response| response.status == StatusCode::NOT_FOUND).await;
}

#[tokio::test]
async fn a_site_name_cannot_take_over_a_verified_domain() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>mine").await;
    add(&edge, &site, "www.example.com", "verified").await;
    let response = edge.visitor.get("localhost", "/p/index?site=www.example.com").await;
    assert_eq!(response.status, StatusCode::NOT_FOUND, "a domain is not a site name");
    assert_eq!(edge.visitor.get("www.example.com", "/").await.text(), "<p>mine");
    let response = edge.visitor.get("localhost", "/p/index?site=www.example.com").await;
    assert_eq!(response.status, StatusCode::NOT_FOUND, "a cached domain is not a site name either");
}

#[tokio::test]
async fn a_domain_still_serves_its_renamed_site() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>mine").await;
    add(&edge, &site, "www.example.com", "verified").await;
    assert_eq!(edge.visitor.get("www.example.com", "/").await.text(), "<p>mine");
    edge.run("update subdomains set name = 'loud-badger' where name = 'quiet-otter'").await;
    for host in ["quiet-otter", "loud-badger"] {
        edge.publish_change(Change::Host { host: host.to_owned() }).await;
    }
    edge.get_until("loud-badger.localhost", "/", |response| response.text() == "<p>mine").await;
    assert_eq!(edge.visitor.get("www.example.com", "/").await.text(), "<p>mine");
}

#[tokio::test]
async fn a_domain_of_a_suspended_account_answers_451() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>mine").await;
    add(&edge, &site, "www.example.com", "verified").await;
    assert_eq!(edge.visitor.get("www.example.com", "/").await.status, StatusCode::OK);
    let mut tx = store::begin(&edge.database.db).await.unwrap();
    assert!(store::accounts::suspend(&mut tx, site.id, None, crate::fixtures::now()).await.unwrap());
    store::commit(tx).await.unwrap();
    edge.relay_outbox().await;
    edge.get_until("www.example.com", "/", |response| {
        response.status == StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS
    })
    .await;
}

#[tokio::test]
async fn a_domain_is_served_for_a_week_after_it_was_last_verified() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>mine").await;
    add(&edge, &site, "www.example.com", "verified").await;
    let verified = async |age: &str| {
        edge.run(&format!(
            "update domains set dns_status = 'failed', verified_at = now() - interval '{age}'"
        ))
        .await;
        edge.publish_change(Change::Host { host: "www.example.com".to_owned() }).await;
    };
    verified("8 days").await;
    edge.get_until("www.example.com", "/", |response| response.status == StatusCode::NOT_FOUND).await;
    verified("6 days 23 hours").await;
    edge.get_until("www.example.com", "/", |response| response.text() == "<p>mine").await;
}

#[tokio::test]
async fn a_domain_redirects_requests_of_every_method_to_another_one_while_that_is_served() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>mine").await;
    site.page("about", "<p>about").await;
    add(&edge, &site, "www.example.com", "verified").await;
    add(&edge, &site, "example.com", "verified").await;
    assert_eq!(edge.visitor.get("www.example.com", "/about?a=1").await.text(), "<p>about");
    let redirect = "update domains set redirect_to = (select id from domains where domain = 'example.com')
                    where domain = 'www.example.com'";
    edge.run(redirect).await;
    edge.publish_change(Change::Host { host: "www.example.com".to_owned() }).await;
    let redirected = StatusCode::PERMANENT_REDIRECT;
    let response =
        edge.get_until("www.example.com", "/about?a=1", |response| response.status == redirected).await;
    assert_eq!(response.header("location"), format!("http://example.com:{}/about?a=1", edge.port()));
    for (method, path) in
        [(Method::POST, "/about"), (Method::DELETE, "/"), (Method::OPTIONS, "/x"), (Method::PUT, "/api/x")]
    {
        let response = edge.visitor.send(method, "www.example.com", path, &[], "a body").await;
        let location = format!("http://example.com:{}{path}", edge.port());
        assert_eq!((response.status, response.header("location")), (redirected, location.as_str()));
    }
    assert_eq!(edge.visitor.get("example.com", "/about").await.text(), "<p>about");
    // A target that is not served would make the site unreachable.
    edge.run("update domains set verified_at = null where domain = 'example.com'").await;
    edge.publish_change(Change::Host { host: "www.example.com".to_owned() }).await;
    edge.get_until("www.example.com", "/about", |response| response.text() == "<p>about").await;
}
