//! Webhooks to addresses that this installation serves, whose deliveries could cause further ones.

use domain::plans::Plan;
use serde_json::json;

use super::settings::{Owner, hook};

#[tokio::test]
async fn webhooks_that_post_to_the_services_own_addresses_are_rejected() {
    let owner =
        Owner::new(&["http.base_url=https://app.runtime.example", "http.sites_domain=sites.test"]).await;
    let (path, _) = owner.webhook(hook()).await;
    let other = owner.api.trial_on(Plan::Scale).await.1;
    let domain = format!(
        "insert into domains (id, account_id, subdomain_id, domain, dns_status, verified_at, challenge, created_at)
         select gen_random_uuid(), account_id, id, 'shop.example', 'verified', now(), 'x', now()
         from subdomains where account_id = '{other}' limit 1"
    );
    owner.api.execute(&domain).await.unwrap();
    for url in [
        "https://app.runtime.example/api/forms/00000000-0000-0000-0000-000000000000/submit",
        "https://APP.runtime.example.:443/",
        "https://a-b.sites.test/_wr/collect",
        "https://sites.test/",
        "https://shop.example/x",
    ] {
        for place in ["/api/webhooks", &path] {
            let rejected = owner.rejected(place, json!({"url": url})).await;
            assert_eq!(rejected, ("url".to_owned(), "own_address".to_owned()), "{url}");
        }
    }
    for url in ["https://www.shop.example/", "https://app.runtime.example:8443/", "https://runtime.example/"]
    {
        owner.webhook(json!({"url": url})).await;
    }
    let local = Owner::new(&[
        "http.base_url=http://localhost:8080",
        "http.sites_domain=localhost",
        "outbound.allow=[\"127.0.0.0/8\", \"localhost\", \"*.localhost\"]",
    ])
    .await;
    for url in ["http://localhost:8080/", "http://127.0.0.1:8080/x", "http://a-b.localhost:8080/"] {
        assert_eq!(local.rejected("/api/webhooks", json!({"url": url})).await.1, "own_address", "{url}");
    }
    local.webhook(json!({"url": "http://localhost:3000/"})).await;
    local.webhook(json!({"url": "http://127.0.0.1:3000/"})).await;
}
