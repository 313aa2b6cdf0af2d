//! Custom domains: reserved for larger plans, one subdomain each, counted exactly.

use axum::body::Body;
use chrono::{DateTime, TimeDelta, Utc};
use domain::plans::Plan;
use http::{Method, Request, StatusCode};
use sandbox::test::DnsBehavior;
use serde_json::{Value, json};

use crate::harness::Api;

const DOMAINS: &str = "/api/account/domains";

#[tokio::test]
async fn the_free_plan_rejects_custom_domains() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (status, problem) =
        api.send(Method::POST, DOMAINS, Some(&key), &json!({"domain": "www.example.com"})).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("plan_restricted")));
    assert_eq!(problem["upgradeUrl"], "/api/account/upgrade");
}

#[tokio::test]
async fn a_domain_is_added_repointed_and_removed() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let call =
        async |method: Method, path: &str, body: Value| api.send(method, path, Some(&key), &body).await;
    let (_, second) = call(Method::POST, "/api/account/subdomains", json!({"name": "second-one"})).await;
    let (status, created) = call(Method::POST, DOMAINS, json!({"domain": "WWW.Example.com."})).await;
    assert_eq!((status, &created["domain"]), (StatusCode::CREATED, &json!("www.example.com")), "{created}");
    assert_eq!(
        (&created["status"], &created["dnsStatus"], &created["sslStatus"]),
        (&json!("pending"), &json!("pending"), &json!("pending"))
    );
    let (_, first) = call(Method::GET, "/api/account/subdomain", Value::Null).await;
    assert_eq!(created["subdomainId"], first["id"], "the first subdomain by default");
    assert_eq!(created["records"][0]["type"], "CNAME");
    assert!(
        created["records"][0]["value"]
            .as_str()
            .unwrap()
            .starts_with(created["subdomainName"].as_str().unwrap())
    );

    let (status, problem) = call(Method::POST, DOMAINS, json!({"domain": "www.example.com"})).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")));
    let path = format!("{DOMAINS}/{}", created["id"].as_str().unwrap());
    let (_, moved) = call(Method::PATCH, &path, json!({"subdomainId": second["id"]})).await;
    assert_eq!((&moved["subdomainId"], &moved["subdomainName"]), (&second["id"], &json!("second-one")));
    assert_eq!(call(Method::GET, &path, Value::Null).await.1["subdomainName"], "second-one");

    let used =
        async || call(Method::GET, "/api/account/usage", Value::Null).await.1["usage"]["domains"].clone();
    assert_eq!(used().await, json!({"used": 1, "limit": 5}), "a rejected domain is not counted");
    assert_eq!(call(Method::DELETE, &path, Value::Null).await.0, StatusCode::OK);
    assert_eq!(used().await, json!({"used": 0, "limit": 5}));
    assert_eq!(call(Method::GET, &path, Value::Null).await.0, StatusCode::NOT_FOUND);
    assert_eq!(call(Method::DELETE, &path, Value::Null).await.0, StatusCode::NOT_FOUND);
    let (status, _) = call(Method::POST, DOMAINS, json!({"domain": "www.example.com"})).await;
    assert_eq!(status, StatusCode::CREATED);
}

#[tokio::test]
async fn two_accounts_may_add_a_domain_until_one_verifies_it() {
    let api = Api::start(&[]).await;
    for _ in 0..2 {
        let (key, _) = api.trial_on(Plan::Pro).await;
        let body = json!({"domain": "www.example.com"});
        assert_eq!(api.send(Method::POST, DOMAINS, Some(&key), &body).await.0, StatusCode::CREATED);
    }
}

#[tokio::test]
async fn own_hosts_and_invalid_hosts_are_rejected() {
    let api = Api::start(&["http.sites_domain=sites.test"]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    for domain in [
        "sites.test",
        "shop.sites.test",
        "localhost",
        "10.0.0.1",
        "[::1]",
        "https://a.example",
        "a.example:80",
        "*.a.example",
        "co.uk",
        "a",
    ] {
        let (status, problem) = api.send(Method::POST, DOMAINS, Some(&key), &json!({"domain": domain})).await;
        assert_eq!(
            (status, &problem["fieldErrors"][0]["field"]),
            (StatusCode::BAD_REQUEST, &json!("domain")),
            "{domain}"
        );
    }
}

/// Settings under which `www.example.com` must be an alias of `edge.test`, and `example.com` has the address 203.0.113.7.
const ROUTING: [&str; 3] = [
    "domains.cname_target=edge.test",
    "domains.addresses=[\"203.0.113.7\"]",
    "domains.caa_identities=[\"ca.test\"]",
];

struct Owner {
    api: Api,
    key: String,
}

impl Owner {
    async fn new(set: &[&str]) -> Self {
        let api = Api::start(&[&ROUTING, set].concat()).await;
        let (key, _) = api.trial_on(Plan::Pro).await;
        Self { api, key }
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        self.api.send(method, path, Some(&self.key), &body).await
    }

    /// Adds a domain. Returns its path and its view.
    async fn add(&self, body: Value) -> (String, Value) {
        let (status, created) = self.call(Method::POST, DOMAINS, body).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
        (format!("{DOMAINS}/{}", created["id"].as_str().unwrap()), created)
    }

    async fn read(&self, path: &str) -> Value {
        let (status, domain) = self.call(Method::GET, path, Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{domain}");
        domain
    }

    async fn rejected(&self, method: Method, path: &str, body: Value) -> (Value, Value) {
        let (status, problem) = self.call(method, path, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
        let error = &problem["fieldErrors"][0];
        (error["field"].clone(), error["code"].clone())
    }
}

#[tokio::test]
async fn reading_a_domain_checks_it_and_says_the_one_thing_to_do() {
    let owner = Owner::new(&[]).await;
    let dns = owner.api.dns();
    let (path, created) = owner.add(json!({"domain": "www.example.com"})).await;
    assert_eq!(created["lastCheckedAt"], Value::Null);
    let proof = created["records"][1]["value"].as_str().unwrap().to_owned();
    let expect = async |code: Value, record: usize, status: &str| {
        let domain = owner.read(&path).await;
        assert_eq!(domain["errorCode"], code, "{domain}");
        assert_eq!(domain["records"][record]["status"], status, "{domain}");
        if !code.is_null() {
            assert_eq!(domain["_next"][0]["hint"], domain["error"], "{domain}");
        }
        domain
    };
    expect(json!("no_such_name"), 0, "missing").await;
    dns.set("www.example.com", &["CNAME edge.test"]);
    expect(json!("txt_missing"), 0, "ok").await;
    dns.set("_webruntime.www.example.com", &["TXT another text"]);
    let wrong = expect(json!("txt_wrong"), 1, "wrong").await;
    assert_eq!(wrong["records"][1]["found"], json!(["another text"]));
    dns.set("_webruntime.www.example.com", &[&format!("TXT {proof}")]);
    let stands = expect(Value::Null, 1, "ok").await;
    assert_eq!(
        (&stands["status"], &stands["dnsStatus"], &stands["sslStatus"], &stands["certificate"]),
        (&json!("active"), &json!("verified"), &json!("issuing"), &Value::Null)
    );
    owner
        .api
        .execute(
            "update certificates set chain = 'PEM', sealed_key = '\\x00', issuer = 'A CA', not_after = now() + interval '60 days',
             renew_at = now() + interval '30 days', next_attempt_at = null",
        )
        .await
        .unwrap();
    let served = owner.read(&path).await;
    assert_eq!((&served["sslStatus"], &served["certificate"]["issuer"]), (&json!("active"), &json!("A CA")));
    assert!(served["certificate"]["nextRenewalAt"].is_string() && served["_next"][0].is_null());
    // Without a domain that is held there is no certificate.
    assert_eq!(owner.call(Method::DELETE, &path, Value::Null).await.0, StatusCode::OK);
    let (_, again) = owner.add(json!({"domain": "www.example.com"})).await;
    assert_eq!((&again["sslStatus"], &again["certificate"]), (&json!("pending"), &Value::Null));
}

#[tokio::test]
async fn a_refused_order_shows_the_authoritys_words() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.add(json!({"domain": "example.com"})).await;
    let proof = created["records"][1]["value"].as_str().unwrap();
    owner.api.dns().set("example.com", &["A 203.0.113.7"]);
    owner.api.dns().set("_webruntime.example.com", &[&format!("TXT {proof}")]);
    assert_eq!(owner.read(&path).await["sslStatus"], "issuing");
    let refused = "update certificates set error_code = 'acme_refused', error = 'policy forbids it',
                   next_attempt_at = '2030-01-01T00:00:00Z'";
    owner.api.execute(refused).await.unwrap();
    let domain = owner.read(&path).await;
    assert_eq!((&domain["sslStatus"], &domain["errorCode"]), (&json!("failed"), &json!("acme_refused")));
    assert!(domain["error"].as_str().unwrap().contains("policy forbids it"));
    assert_eq!(domain["nextAttemptAt"], "2030-01-01T00:00:00Z", "{domain}");
}

#[tokio::test]
async fn a_successful_check_repeats_a_refused_order_now_and_nothing_else_does() {
    let owner = Owner::new(&[]).await;
    let dns = owner.api.dns();
    let (path, created) = owner.add(json!({"domain": "example.com"})).await;
    let proof = created["records"][1]["value"].as_str().unwrap();
    dns.set("example.com", &["A 203.0.113.7"]);
    dns.set("_webruntime.example.com", &[&format!("TXT {proof}")]);
    assert_eq!(owner.read(&path).await["sslStatus"], "issuing");
    let later = json!("2099-01-01T00:00:00Z");
    let failed = async |code: &str| {
        let failed = format!("update certificates set error_code = '{code}', next_attempt_at = {later}");
        owner.api.execute(&failed.replace('"', "'")).await.unwrap();
    };
    let check = async || {
        let (status, domain) = owner.call(Method::POST, &format!("{path}/check"), Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{domain}");
        domain
    };
    failed("acme_refused").await;
    assert_eq!(owner.read(&path).await["nextAttemptAt"], later, "a read leaves the backoff");
    dns.set("example.com", &["A 203.0.113.7", "CAA other.test"]);
    assert_eq!(check().await["errorCode"], "caa_forbids");
    dns.set("example.com", &["A 203.0.113.7"]);
    for code in ["acme_rate_limited", "acme_unreachable"] {
        failed(code).await;
        assert_eq!(check().await["nextAttemptAt"], later, "{code} is no matter of the domain");
    }
    failed("acme_refused").await;
    let hurried = check().await;
    let next: DateTime<Utc> = serde_json::from_value(hurried["nextAttemptAt"].clone()).unwrap();
    let checked: DateTime<Utc> = serde_json::from_value(hurried["lastCheckedAt"].clone()).unwrap();
    assert!(next - checked < TimeDelta::minutes(1), "{hurried}");
}

#[tokio::test]
async fn a_failure_of_this_service_is_told_in_one_sentence() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.add(json!({"domain": "example.com"})).await;
    let proof = created["records"][1]["value"].as_str().unwrap();
    owner.api.dns().set("example.com", &["A 203.0.113.7"]);
    owner.api.dns().set("_webruntime.example.com", &[&format!("TXT {proof}")]);
    assert_eq!(owner.read(&path).await["sslStatus"], "issuing");
    let failed = "update certificates set error_code = 'order_failed', error = 'This service failed.'";
    owner.api.execute(failed).await.unwrap();
    let domain = owner.read(&path).await;
    let sentence = "This service failed while it ordered the certificate. The order is repeated by itself.";
    assert_eq!((&domain["errorCode"], &domain["error"]), (&json!("order_failed"), &json!(sentence)));
}

#[tokio::test]
async fn times_of_overdue_checks_and_renewals_are_never_in_the_past() {
    let owner = Owner::new(&["domains.recheck_after=1h"]).await;
    let (path, created) = owner.add(json!({"domain": "example.com"})).await;
    let proof = created["records"][1]["value"].as_str().unwrap();
    owner.api.dns().set("example.com", &["A 203.0.113.7"]);
    owner.api.dns().set("_webruntime.example.com", &[&format!("TXT {proof}")]);
    assert_eq!(owner.read(&path).await["sslStatus"], "issuing");
    let overdue = "update domains set next_attempt_at = now() - interval '1 hour';
                   update certificates set chain = 'PEM', sealed_key = '\\x00', issuer = 'A CA',
                     not_after = now() + interval '10 days', renew_at = now() - interval '1 day', next_attempt_at = null";
    for statement in overdue.split(';') {
        owner.api.execute(statement).await.unwrap();
    }
    let domain = owner.read(&path).await;
    let time = |value: &Value| value.as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap();
    let earliest = time(&domain["lastCheckedAt"]);
    assert!(time(&domain["nextAttemptAt"]) >= earliest, "{domain}");
    assert!(time(&domain["certificate"]["nextRenewalAt"]) >= earliest, "{domain}");
}

#[tokio::test]
async fn a_check_that_comes_too_soon_gets_429_and_a_read_shows_what_stands() {
    let owner = Owner::new(&["domains.recheck_after=1h"]).await;
    let (path, _) = owner.add(json!({"domain": "www.example.com"})).await;
    let check = format!("{path}/check");
    let (status, checked) = owner.call(Method::POST, &check, Value::Null).await;
    assert_eq!((status, &checked["errorCode"]), (StatusCode::OK, &json!("no_such_name")), "{checked}");
    owner.api.dns().set("www.example.com", &["CNAME edge.test"]);
    let again = Request::post(&check).header("authorization", format!("Bearer {}", owner.key));
    let (status, headers, problem) = owner.api.exchange(again.body(Body::empty()).unwrap()).await;
    assert_eq!((status, &problem["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("rate_limited")));
    assert_eq!(headers["retry-after"], "3600");
    let domain = owner.read(&path).await;
    assert_eq!(
        (&domain["errorCode"], &domain["lastCheckedAt"]),
        (&json!("no_such_name"), &checked["lastCheckedAt"])
    );
}

#[tokio::test]
async fn a_silent_dns_server_delays_a_read_by_less_than_five_seconds() {
    let owner = Owner::new(&[]).await;
    let (path, _) = owner.add(json!({"domain": "www.example.com"})).await;
    owner.api.dns().misbehave("www.example.com", Some(DnsBehavior::Silent));
    let started = std::time::Instant::now();
    assert_eq!(owner.read(&path).await["errorCode"], "txt_missing");
    owner.api.dns().misbehave("_webruntime.www.example.com", Some(DnsBehavior::Silent));
    assert_eq!(owner.read(&path).await["errorCode"], "dns_timeout");
    assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
}

#[tokio::test]
async fn reads_that_wait_for_a_silent_dns_server_hold_no_connection_to_postgres() {
    let owner = Owner::new(&["store.max_connections=1"]).await;
    let (path, _) = owner.add(json!({"domain": "www.example.com"})).await;
    for name in ["www.example.com", "_webruntime.www.example.com"] {
        owner.api.dns().misbehave(name, Some(DnsBehavior::Silent));
    }
    let list = async {
        sandbox::test::until(async || owner.api.dns().questions() > 0).await;
        owner.call(Method::GET, DOMAINS, Value::Null).await
    };
    tokio::select! {
        read = owner.read(&path) => panic!("the list waited for the read: {read}"),
        (status, listed) = list => {
            assert_eq!((status, &listed["domains"][0]["domain"]), (StatusCode::OK, &json!("www.example.com")));
        }
    }
}

#[tokio::test]
async fn redirects_between_domains_never_loop_and_stay_within_the_account() {
    let owner = Owner::new(&[]).await;
    let (apex_path, apex) = owner.add(json!({"domain": "example.com"})).await;
    let (www_path, www) = owner.add(json!({"domain": "www.example.com", "redirectTo": apex["id"]})).await;
    assert_eq!(www["redirectTo"], apex["id"]);
    let refused =
        async |id: &Value| owner.rejected(Method::PATCH, &apex_path, json!({"redirectTo": id})).await;
    assert_eq!(refused(&www["id"]).await, (json!("redirectTo"), json!("loop")));
    assert_eq!(refused(&apex["id"]).await, (json!("redirectTo"), json!("loop")));
    let (stranger, _) = owner.api.trial_on(Plan::Pro).await;
    let (_, foreign) =
        owner.api.send(Method::POST, DOMAINS, Some(&stranger), &json!({"domain": "foreign.example"})).await;
    let unknown = json!("00000000-0000-4000-8000-000000000000");
    for id in [&foreign["id"], &unknown] {
        assert_eq!(refused(id).await, (json!("redirectTo"), json!("unknown")));
        let body = json!({"domain": "new.example.com", "redirectTo": id});
        assert_eq!(
            owner.rejected(Method::POST, DOMAINS, body).await,
            (json!("redirectTo"), json!("unknown"))
        );
    }
    let (_, ended) = owner.call(Method::PATCH, &www_path, json!({"redirectTo": null})).await;
    assert_eq!(ended["redirectTo"], Value::Null);
    let (status, turned) = owner.call(Method::PATCH, &apex_path, json!({"redirectTo": www["id"]})).await;
    assert_eq!((status, &turned["redirectTo"]), (StatusCode::OK, &www["id"]));
    assert_eq!(owner.call(Method::DELETE, &www_path, Value::Null).await.0, StatusCode::OK);
    assert_eq!(owner.read(&apex_path).await["redirectTo"], Value::Null);
}

#[tokio::test]
async fn a_change_of_another_setting_does_not_bring_back_a_redirect_that_makes_a_loop() {
    let owner = Owner::new(&[]).await;
    let (_, apex) = owner.add(json!({"domain": "example.com"})).await;
    let (www_path, www) = owner.add(json!({"domain": "www.example.com", "redirectTo": apex["id"]})).await;
    let mut tx = owner.api.begin().await;
    // Two other calls turn the redirect around and are about to commit.
    let turned = format!(
        "update domains set redirect_to = null where id = '{0}'; update domains set redirect_to = '{0}' where id = '{1}'",
        www["id"].as_str().unwrap(),
        apex["id"].as_str().unwrap()
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(turned)).execute(&mut *tx).await.unwrap();
    let changed = owner.call(Method::PATCH, &www_path, json!({"hsts": {"maxAge": 300}}));
    let committed = async {
        owner.api.until_lock_wait().await;
        store::commit(tx).await.unwrap();
    };
    let ((status, www), ()) = tokio::join!(changed, committed);
    assert_eq!((status, &www["redirectTo"]), (StatusCode::OK, &Value::Null), "{www}");
    assert_eq!(www["hsts"]["maxAge"], 300);
}

#[tokio::test]
async fn a_read_does_not_forget_the_proxy_that_a_scheduled_check_found() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.add(json!({"domain": "example.com"})).await;
    let proof = created["records"].as_array().unwrap().last().unwrap()["value"].as_str().unwrap();
    owner.api.dns().set("example.com", &["A 198.51.100.1"]);
    owner.api.dns().set("_webruntime.example.com", &[&format!("TXT {proof}")]);
    assert_eq!(owner.read(&path).await["errorCode"], "address_wrong");
    owner.api.execute("update domains set found = jsonb_set(found, '{is_proxied}', 'true')").await.unwrap();
    for _ in 0..2 {
        let proxied = owner.read(&path).await;
        assert_eq!(proxied["errorCode"], "proxied");
        assert!(proxied["error"].as_str().unwrap().contains("Switch it off"), "{proxied}");
    }
    owner.api.dns().set("example.com", &["A 198.51.100.2"]);
    assert_eq!(owner.read(&path).await["errorCode"], "address_wrong");
}

#[tokio::test]
async fn hsts_is_off_until_set_and_bounded() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.add(json!({"domain": "www.example.com"})).await;
    assert_eq!(created["hsts"], Value::Null);
    for wrong in [-1_i64, 63_072_001] {
        let body = json!({"hsts": {"maxAge": wrong}});
        assert_eq!(owner.rejected(Method::PATCH, &path, body).await.0, json!("hsts.maxAge"));
    }
    let (_, set) = owner.call(Method::PATCH, &path, json!({"hsts": {"maxAge": 300}})).await;
    assert_eq!(set["hsts"], json!({"maxAge": 300, "includeSubDomains": false}));
    let (_, moved) = owner.call(Method::PATCH, &path, json!({"subdomainId": created["subdomainId"]})).await;
    assert_eq!(moved["hsts"], set["hsts"], "another setting stays");
    let (_, unset) = owner.call(Method::PATCH, &path, json!({"hsts": null})).await;
    assert_eq!(unset["hsts"], Value::Null);
    assert_eq!(
        owner.rejected(Method::PATCH, &path, json!({})).await,
        (json!("subdomainId"), json!("required"))
    );
}
