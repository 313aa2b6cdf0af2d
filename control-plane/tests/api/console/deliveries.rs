//! Changes of a webhook, and its deliveries with their requests, on their pages.

use chrono::TimeDelta;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use service::Clock;

use super::visitor::Visitor;
use crate::webhooks::settings::{Owner, hook};

/// Returns the console's page of a webhook.
fn page_of(webhook: &Value) -> String {
    format!("/console/webhooks/{}", webhook["id"].as_str().unwrap())
}

fn now() -> String {
    Clock::system().now().to_rfc3339()
}

#[tokio::test]
async fn a_webhook_is_edited_and_limited_to_forms() {
    let owner = Owner::new(&[]).await;
    let ada = Visitor::of(&owner.api, &owner.key, owner.account_id).await;
    let form = owner.form(&[]).await;
    let (path, webhook) = owner.webhook(hook()).await;
    let page = page_of(&webhook);
    ada.get(&page).await.contains("all forms").contains(&format!("{page}/edit"));
    ada.get(&format!("{page}/edit"))
        .await
        .contains("value=\"all\" checked")
        .contains("value=\"submission.created\" checked");
    let account = owner.account_id.to_string();
    let save = async |url: &str, reach: &str| {
        let fields = [
            ("account", account.as_str()),
            ("url", url),
            ("description", "CRM <i>"),
            ("template", "slack"),
            ("telegramChatId", ""),
            ("events[]", ""),
            ("events[]", "form.closed"),
            ("formIds[]", ""),
            ("formIds[]", &form),
            ("hears", reach),
        ];
        ada.post(&format!("{page}/edit"), &fields).await
    };
    let refused = save("nonsense", "chosen").await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    refused
        .contains("href=\"#field-url\"")
        .contains("value=\"nonsense\"")
        .contains("value=\"form.closed\" checked");
    refused.contains("value=\"chosen\" checked").contains("value=\"slack\" selected");
    let saved = save("https://example.com/new", "chosen").await;
    assert_eq!(
        (saved.status, saved.header("location")),
        (StatusCode::SEE_OTHER, page.as_str()),
        "{}",
        saved.html
    );
    let read = owner.get(&path).await;
    let members = ["url", "description", "template", "events", "allForms", "formIds"];
    let expected = json!(["https://example.com/new", "CRM <i>", "slack", ["form.closed"], false, [form]]);
    assert_eq!(json!(members.map(|member| read[member].clone())), expected);
    ada.get(&page).await.contains("CRM &lt;i&gt;").contains("Sends form.closed");
    save("https://example.com/new", "all").await;
    assert_eq!(owner.get(&path).await["allForms"], true);

    let switch = async |active: &str| {
        ada.post(&format!("{page}/switch"), &[("account", &account), ("active", active)]).await
    };
    assert_eq!(switch("false").await.status, StatusCode::SEE_OTHER);
    ada.get(&page).await.contains("Switch on");
    assert_eq!(switch("true").await.status, StatusCode::SEE_OTHER);
    let deleted = ada.post(&format!("{page}/delete"), &[("account", &account)]).await;
    assert_eq!((deleted.status, deleted.header("location")), (StatusCode::SEE_OTHER, "/console/webhooks"));
    assert_eq!(ada.get(&page).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_new_secret_needs_a_fresh_sign_in_which_leads_back() {
    let owner = Owner::new(&["keys.cache_ttl=0s"]).await;
    let ada = Visitor::of(&owner.api, &owner.key, owner.account_id).await;
    let (_, webhook) = owner.webhook(hook()).await;
    let page = page_of(&webhook);
    let account = owner.account_id.to_string();
    let fields = [("account", account.as_str()), ("keepPreviousForSeconds", "0")];
    let rotated = ada.post(&format!("{page}/secret"), &fields).await;
    assert_eq!(rotated.status, StatusCode::OK);
    rotated.contains("<output id=\"secret\">whsec_").contains("The old one signs nothing any more");
    assert!(!rotated.html.contains(webhook["secret"].as_str().unwrap()));
    assert!(!ada.get(&format!("{page}/edit")).await.html.contains("whsec_"), "it is shown once");

    owner.api.execute("update sessions set created_at = created_at - interval '1 hour'").await.unwrap();
    let refused = ada.post(&format!("{page}/secret"), &fields).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.html);
    refused.contains("href=\"/login?again=true&amp;returnTo=%2Fconsole\"").contains("Sign in again");
    assert!(!refused.html.contains("whsec_"));
}

#[tokio::test]
async fn a_delivery_shows_its_attempts_and_its_request_as_it_was_sent() {
    let owner = Owner::new(&[]).await;
    let ada = Visitor::of(&owner.api, &owner.key, owner.account_id).await;
    let (_, webhook) = owner.webhook(hook()).await;
    let (_, other) = owner.webhook(hook()).await;
    let id = owner.attempted(&webhook, &now(), Some(503)).await;
    let answer = "update delivery_attempts set response_body = '<img src=x onerror=alert(1)>'";
    owner.api.execute(answer).await.unwrap();
    let page = format!("{}/deliveries/{id}", page_of(&webhook));
    ada.get(&page).await.contains("before requests were recorded");
    owner.record_request(id, "https://example.com/hook", &webhook["secret"], Clock::system().now()).await;
    let shown = ada.get_with(&page, &[("accept-encoding", "gzip")]).await;
    assert_eq!(
        (shown.status, shown.header("content-encoding")),
        (StatusCode::OK, ""),
        "it holds a URL that may be a secret"
    );
    shown
        .contains("Status 503")
        .contains("42 ms")
        .contains("&lt;img src=x onerror=alert(1)&gt;")
        .contains("no success");
    shown.contains("webhook-signature: v1,").contains("curl -X POST &#39;https://example.com/hook&#39;");
    assert!(!shown.html.contains("<img"), "{}", shown.html);

    let foreign = format!("{}/deliveries/{id}", page_of(&other));
    assert_eq!(ada.get(&foreign).await.status, StatusCode::NOT_FOUND);
    let eve = Visitor::sign_in(&owner.api).await;
    assert_eq!(eve.get(&page).await.status, StatusCode::NOT_FOUND);

    let account = owner.account_id.to_string();
    let again = ada.post(&format!("{page}/retry"), &[("account", &account)]).await;
    assert_eq!((again.status, again.header("location")), (StatusCode::SEE_OTHER, page.as_str()));
    ada.get(&page).await.contains("Next attempt");
}

#[tokio::test]
async fn deliveries_are_filtered_counted_by_hour_and_recovered() {
    let owner = Owner::new(&[]).await;
    let ada = Visitor::of(&owner.api, &owner.key, owner.account_id).await;
    let (_, webhook) = owner.webhook(hook()).await;
    let page = page_of(&webhook);
    let old = owner.attempted(&webhook, "2026-01-03T10:00:00Z", Some(404)).await;
    let delivered = owner.attempted(&webhook, &now(), Some(200)).await;
    let failed = owner.attempted(&webhook, &now(), Some(503)).await;
    let all = ada.get(&page).await;
    all.contains("Last 24 hours").contains("1 delivered, 1 failed").contains("class=\"strip\"");
    let link = |id: &uuid::Uuid| format!("/deliveries/{id}\"");
    for (query, expected) in [
        ("", vec![&old, &delivered, &failed]),
        ("status=failed", vec![&old, &failed]),
        ("statusClass=5xx", vec![&failed]),
        ("statusClass=2xx&status=delivered", vec![&delivered]),
        ("from=2026-01-03&to=2026-01-03", vec![&old]),
    ] {
        let list = ada.get(&format!("{page}?{query}")).await;
        for id in [&old, &delivered, &failed] {
            assert_eq!(list.html.contains(&link(id)), expected.contains(&id), "{query}: {id}");
        }
    }
    let unknown = ada.get(&format!("{page}?submissionId=nonsense%22%3Cb%3E")).await;
    unknown.contains("value=\"nonsense&quot;&lt;b&gt;\"").contains("Request ");

    let since = Clock::system().now() - TimeDelta::hours(2);
    let failing = format!("update webhooks set failing_since = '{}'", since.to_rfc3339());
    owner.api.execute(&failing).await.unwrap();
    let page_html = ada.get(&page).await;
    page_html.contains("Recover").contains("Deliveries fail since");
    let (account, since) = (page_html.hidden("account"), page_html.hidden("since"));
    let recovered = ada.post(&format!("{page}/retry"), &[("account", &account), ("since", &since)]).await;
    assert_eq!(recovered.status, StatusCode::SEE_OTHER, "{}", recovered.html);
    let (_, list) = owner.call(Method::GET, "/api/deliveries?status=pending", Value::Null).await;
    assert_eq!(list["deliveries"].as_array().unwrap().len(), 2, "what failed lately: {list}");
    let day = Clock::system().now().date_naive().to_string();
    let by_day = ada.post(&format!("{page}/retry"), &[("account", &account), ("day", &day)]).await;
    assert_eq!(by_day.status, StatusCode::SEE_OTHER, "{}", by_day.html);
}
