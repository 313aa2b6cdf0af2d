//! The URL of an http trigger: who is refused, and what a run gets to see.

use domain::plans::Plan;
use domain::webhooks::sign;
use http::Method;
use sandbox::test::until;
use serde_json::{Value, json};
use service::Clock;

use super::fixture::{Owner, http, with};

fn guarded(kind: &str) -> Value {
    let trigger = json!({"type": "http", "auth": {"type": kind, "env": "TOKEN"}});
    with(with(http(), "trigger", trigger), "env", json!({"TOKEN": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}))
}

fn url(created: &Value) -> String {
    created["triggerUrl"].as_str().unwrap().to_owned()
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn a_request_starts_a_run_that_sees_it_without_credentials() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(http()).await;
    let session = owner.api.sign_in(owner.account_id).await;
    let headers = [
        JSON,
        ("cookie", session.as_str()),
        ("authorization", "Bearer secret"),
        ("x-forwarded-for", "203.0.113.9"),
        ("x-client-ip", "203.0.113.9"),
        ("x-edge-token", "a-token-for-tests-alone"),
        ("x-secret", "s"),
        ("forwarded", "for=203.0.113.9"),
        ("user-agent", "curl"),
        ("X-GitHub-Event", "push"),
    ];
    let target = format!("{}?a=1&b=%C3%BC&a=2", url(&created));
    let response =
        owner.public(Method::POST, &target, &headers, r#"{"z": [1], "a": "{{ env.TOKEN }}"}"#).await;
    assert_eq!(response.status, 202, "{response:?}");
    assert_eq!(response.json(), json!({"runId": response.run_id(), "status": "queued"}));
    assert_eq!(response.header("content-security-policy"), "sandbox");
    assert_eq!(
        (response.header("cache-control"), response.header("x-content-type-options")),
        ("no-store", "nosniff")
    );
    let run = owner.claim_one().await;
    assert_eq!(run.claim.run_id, response.run_id());
    let seen = json!({
        "payload": {"z": [1], "a": "{{ env.TOKEN }}"},
        "query": {"a": "1", "b": "ü"},
        "method": "POST",
        "headers": {"content-type": "application/json", "user-agent": "curl", "x-github-event": "push"},
    });
    assert_eq!(run.trigger, seen);
    assert_eq!((run.trigger_type.as_str(), run.is_test, run.depth), ("http", false, 0));
    let logged = owner.get(&format!("{path}/logs")).await["logs"][0].clone();
    assert_eq!((&logged["runId"], &logged["trigger"]["type"]), (&json!(response.run_id()), &json!("http")));
}

#[tokio::test]
async fn what_is_unknown_disabled_deleted_or_suspended_is_the_same_404() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(http()).await;
    let url = url(&created);
    let post = async |url: &str| {
        let response = owner.trigger(url, &json!({})).await;
        let mut problem = response.json();
        problem.as_object_mut().unwrap().retain(|name, _| name != "requestId");
        (response.status.as_u16(), problem)
    };
    let unknown = post(&format!("/api/automations/run/{}/a", owner.account_id)).await;
    assert_eq!((unknown.0, &unknown.1["code"]), (404, &json!("not_found")));
    assert_eq!(post(&format!("{url}x")).await, unknown, "a wrong slug");
    assert_eq!(post("/api/automations/run/x/a").await.0, 404);
    assert_eq!(post(&url).await.0, 202);
    owner.ok(Method::PUT, &path, json!({"enabled": false})).await;
    assert_eq!(post(&url).await, unknown);
    owner.ok(Method::PUT, &path, json!({"enabled": true})).await;
    assert_eq!(post(&url).await.0, 202);
    // Another replica disables it: the cached entry lasts a second, but no run starts meanwhile.
    owner.api.execute("update automations set is_enabled = false").await.unwrap();
    assert_eq!(post(&url).await, unknown);
    owner.api.execute("update automations set is_enabled = true").await.unwrap();
    until(async || post(&url).await.0 == 202).await;
    owner.api.execute("update accounts set suspended_at = now()").await.unwrap();
    until(async || post(&url).await == unknown).await;
    owner.api.execute("update accounts set suspended_at = null").await.unwrap();
    until(async || post(&url).await.0 == 202).await;
    owner.ok(Method::DELETE, &path, Value::Null).await;
    assert_eq!(post(&url).await, unknown);
    let schedule = json!({"type": "schedule", "cron": "0 7 * * *"});
    let (_, created) = owner.automation(with(http(), "trigger", schedule)).await;
    let id = created["id"].as_str().unwrap();
    assert_eq!(post(&format!("/api/automations/run/{id}/a")).await, unknown);
}

#[tokio::test]
async fn only_the_triggers_method_is_allowed() {
    let owner = Owner::new(&[]).await;
    for (at, method) in ["GET", "POST", "PUT", "PATCH", "DELETE"].into_iter().enumerate() {
        let body = with(http(), "trigger", json!({"type": "http", "method": method}));
        let (_, created) = owner.automation(with(body, "slug", json!(format!("a{at}")))).await;
        for other in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            let response = owner.public(other.parse().unwrap(), &url(&created), &[], "").await;
            if other == method {
                assert_eq!(response.status, 202, "{other}: {response:?}");
                let run = owner.claim_one().await;
                assert_eq!((&run.trigger["method"], &run.trigger["payload"]), (&json!(method), &Value::Null));
            } else {
                assert_eq!((response.status.as_u16(), response.header("allow")), (405, method), "{other}");
            }
        }
    }
}

#[tokio::test]
async fn a_body_is_json_of_at_most_256_kb() {
    let owner = Owner::new(&[]).await;
    let (_, created) = owner.automation(http()).await;
    let url = url(&created);
    let send = async |kind: Option<&str>, body: Vec<u8>| {
        let headers: Vec<_> = kind.map(|kind| ("content-type", kind)).into_iter().collect();
        let response = owner.public(Method::POST, &url, &headers, body).await;
        (response.status.as_u16(), response.json()["code"].as_str().unwrap_or_default().to_owned())
    };
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2)).into_bytes();
    let json = Some("application/json");
    assert_eq!(send(json, text(256 << 10)).await.0, 202);
    assert_eq!(send(json, text((256 << 10) + 1)).await, (413, "payload_too_large".to_owned()));
    for kind in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data; boundary=x"),
    ] {
        assert_eq!(send(kind, b"{}".to_vec()).await, (415, "unsupported_media_type".to_owned()), "{kind:?}");
    }
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000)).into_bytes();
    for body in [b"{".to_vec(), b"{} x".to_vec(), b"\xff".to_vec(), deep, b"{\"a\":NaN}".to_vec()] {
        assert_eq!(send(json, body).await, (400, "malformed_json".to_owned()));
    }
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels)).into_bytes();
    // Wrapped in the trigger, 127 levels could not be read back: every claim of the batch would fail.
    for levels in [65, 127] {
        assert_eq!(send(json, nested(levels)).await, (400, "malformed_json".to_owned()), "{levels} levels");
    }
    let refused = owner.public(Method::POST, &url, &[("content-type", "application/json")], nested(65)).await;
    assert_eq!(refused.json()["detail"], "the body is nested deeper than 64 levels");
    assert_eq!(send(json, nested(64)).await.0, 202);
    assert_eq!(send(json, br#"{"a": "\u0000"}"#.to_vec()).await, (400, "validation_failed".to_owned()));
    for body in ["[1, 2]", "7", "null", "\"text\"", "\"a\""] {
        assert_eq!(send(Some("application/vnd.api+json; charset=utf-8"), body.into()).await.0, 202, "{body}");
    }
    assert_eq!(send(Some("text/plain"), Vec::new()).await.0, 202, "an empty body has no type");
    let nul = owner.public(Method::POST, &format!("{url}?a=%00"), &[], "").await;
    assert_eq!((nul.status.as_u16(), &nul.json()["fieldErrors"][0]["field"]), (400, &json!("query.a")));
    assert_eq!(owner.claim().await.len(), 8);
}

#[tokio::test]
async fn a_wrong_secret_or_signature_is_refused() {
    let owner = Owner::new(&[]).await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let (_, created) = owner.automation(guarded("secret")).await;
    for (header, status) in [(None, 401), (Some(""), 401), (Some("whsec_"), 401), (Some(secret), 202)] {
        let headers: Vec<_> = header.map(|value| ("x-secret", value)).into_iter().collect();
        let response = owner.public(Method::POST, &url(&created), &headers, "").await;
        assert_eq!(response.status, status, "{header:?}");
        assert!(status == 202 || response.json()["code"] == "unauthenticated");
        // An API key is not what this address asks for.
        assert!(!response.headers.contains_key("www-authenticate"));
    }
    let (_, created) = owner.automation(with(guarded("hmac"), "slug", json!("b"))).await;
    let now = Clock::system().now().timestamp();
    let send = async |signed: i64, body: &'static str, sent: &'static str| {
        let signature = sign(&[secret.to_owned()], "msg_1", signed, body.as_bytes());
        let time = signed.to_string();
        let headers = [
            JSON,
            ("webhook-id", "msg_1"),
            ("webhook-timestamp", time.as_str()),
            ("webhook-signature", signature.as_str()),
        ];
        owner.public(Method::POST, &url(&created), &headers, sent).await.status.as_u16()
    };
    assert_eq!(send(now, r#"{"a": 1}"#, r#"{"a": 1}"#).await, 202);
    assert_eq!(send(now, r#"{"a": 1}"#, r#"{"a": 2}"#).await, 401);
    assert_eq!(send(now - 600, "{}", "{}").await, 401);
    let unsigned = owner.public(Method::POST, &url(&created), &[JSON, ("x-secret", secret)], "{}").await;
    assert_eq!(unsigned.status, 401);
    assert_eq!(owner.claim().await.len(), 2);
}

#[tokio::test]
async fn a_chain_of_automations_that_call_each_other_ends() {
    let owner = Owner::new(&[]).await;
    let (_, created) = owner.automation(http()).await;
    for (depth, status) in [("4", 202), ("5", 508), ("99", 508)] {
        let response = owner.public(Method::POST, &url(&created), &[("webruntime-depth", depth)], "").await;
        assert_eq!(response.status, status, "{depth}");
        assert!(status == 202 || response.json()["code"] == "loop_detected");
    }
    assert_eq!(owner.claim_one().await.depth, 4);
}

#[tokio::test]
async fn scripts_of_other_sites_may_call_only_with_cors() {
    let owner = Owner::new(&[]).await;
    let (_, closed) = owner.automation(http()).await;
    let open = with(http(), "trigger", json!({"type": "http", "cors": true}));
    let (_, open) = owner.automation(with(open, "slug", json!("open"))).await;
    let origin = ("origin", "https://shop.example");
    let call =
        async |method: Method, created: &Value| owner.public(method, &url(created), &[origin], "").await;
    for method in [Method::POST, Method::OPTIONS, Method::GET] {
        let response = call(method.clone(), &closed).await;
        assert_eq!(response.header("access-control-allow-origin"), "", "{method}");
        assert!(method == Method::POST || response.status == 405);
    }
    let preflight = call(Method::OPTIONS, &open).await;
    assert_eq!((preflight.status.as_u16(), preflight.header("access-control-allow-methods")), (204, "POST"));
    for (response, status) in
        [(preflight, 204), (call(Method::POST, &open).await, 202), (call(Method::GET, &open).await, 405)]
    {
        assert_eq!((response.status.as_u16(), response.header("access-control-allow-origin")), (status, "*"));
        assert_eq!(response.header("access-control-allow-credentials"), "");
    }
    assert_eq!(owner.claim().await.len(), 2);
}

#[tokio::test]
async fn requests_of_one_address_are_limited() {
    let owner = Owner::on(Plan::Scale, &["automations.max_requests_per_minute=3"]).await;
    let (_, created) = owner.automation(http()).await;
    let mut statuses = Vec::new();
    for _ in 0..8 {
        statuses.push(owner.trigger(&url(&created), &json!({})).await);
    }
    let limited = statuses.iter().filter(|response| response.status == 429).count();
    // A minute may begin in between, but not twice.
    assert!((2..=5).contains(&limited), "{statuses:?}");
    let wait: u64 =
        statuses.iter().find(|one| one.status == 429).unwrap().header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait));
}

#[tokio::test]
async fn the_run_of_a_saved_definition_keeps_its_concurrency() {
    let owner = Owner::new(&[]).await;
    let concurrency = json!({"limit": 1, "key": "{{ trigger.payload.email }}"});
    let (_, created) = owner.automation(with(http(), "concurrency", concurrency)).await;
    let long = "x".repeat(5_000);
    for email in ["a", "a", "b", long.as_str()] {
        assert_eq!(owner.trigger(&url(&created), &json!({"email": email})).await.status, 202);
    }
    let claimed = owner.claim().await;
    let emails: Vec<usize> =
        claimed.iter().map(|run| run.trigger["payload"]["email"].as_str().unwrap().len()).collect();
    assert_eq!(claimed.len(), 3, "one of each key: {emails:?}");
}

#[tokio::test]
async fn a_request_without_the_secret_learns_nothing_about_its_body() {
    let owner = Owner::new(&[]).await;
    let (_, created) = owner.automation(guarded("secret")).await;
    for (kind, body) in [("text/plain", "x"), ("application/json", "{"), ("application/json", "\"\\u0000\"")]
    {
        let response = owner.public(Method::POST, &url(&created), &[("content-type", kind)], body).await;
        assert_eq!(response.status, 401, "{kind} {body}");
    }
}

#[tokio::test]
async fn guesses_of_urls_and_links_are_limited_too() {
    let owner = Owner::on(Plan::Scale, &["automations.max_requests_per_minute=3"]).await;
    let id = owner.account_id;
    for path in
        [format!("/api/automations/run/{id}/a"), format!("/api/automations/resume/{id}/0/{}", "0".repeat(32))]
    {
        for method in [Method::GET, Method::POST] {
            // A minute may begin in between, but not twice.
            let mut statuses = Vec::new();
            for _ in 0..8 {
                statuses.push(owner.public(method.clone(), &path, &[], "").await.status.as_u16());
            }
            assert!(statuses.contains(&429), "{method} {path}: {statuses:?}");
            assert!(statuses.iter().all(|status| [404, 429].contains(status)), "{statuses:?}");
        }
    }
}
