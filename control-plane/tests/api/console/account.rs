//! The account's page, its sessions and the log of changes.

use http::{Method, StatusCode};
use serde_json::json;

use super::forms::contact_form;
use super::visitor::Visitor;
use crate::harness::Api;

const PATH: &str = "/console/account";

/// Adds sessions of the same person.
async fn further_sessions(api: &Api, ada: &Visitor<'_>, count: u32) {
    let statement = format!(
        "insert into sessions (id, token_hash, identity_id, account_id, created_at, last_seen_at, expires_at, ends_at)
         select gen_random_uuid(), sha256(n::text::bytea), identity_id, account_id, created_at, last_seen_at,
                expires_at, ends_at
         from sessions, generate_series(1, {count}) n where account_id = '{}'",
        ada.account_id
    );
    api.execute(&statement).await.unwrap();
}

/// Returns the ids of the sessions that the page can end.
fn ids(html: &str) -> Vec<String> {
    let rest = html.split("/console/account/sessions/").skip(1);
    let ids = rest.filter_map(|rest| rest.split('"').next()?.strip_suffix("/end").map(str::to_owned));
    ids.collect()
}

#[tokio::test]
async fn settings_are_saved_and_refused_ones_are_kept_with_the_reason() {
    let api = Api::start(&["keys.cache_ttl=0s"]).await;
    let ada = Visitor::sign_in(&api).await;
    let page = ada.get(PATH).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.html);
    page.contains("Usage").contains("Pro").contains("This one").contains("value=\"UTC\"");
    page.contains("ana@example.com").contains("Change to Scale");
    let account = page.hidden("account");
    let form = [("account", &*account), ("name", "<b>Ada</b>"), ("timezone", "Europe/Berlin")];
    let saved = ada.post("/console/account/settings", &form).await;
    assert_eq!((saved.status, saved.header("location")), (StatusCode::SEE_OTHER, PATH));
    let page = ada.get(PATH).await;
    page.contains("value=\"&lt;b&gt;Ada&lt;/b&gt;\"").contains("value=\"Europe/Berlin\"");
    assert!(!page.html.contains("<b>Ada</b>"));

    let form = [("account", &*account), ("name", "Ada"), ("timezone", "Berlin\"")];
    let refused = ada.post("/console/account/settings", &form).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    refused.contains("href=\"#field-timezone\"").contains("value=\"Berlin&quot;\"").contains("value=\"Ada\"");

    let cleared = ada
        .post("/console/account/settings", &[("account", &*account), ("name", ""), ("timezone", "UTC")])
        .await;
    assert_eq!(cleared.status, StatusCode::SEE_OTHER);
    let (_, read) = api.send(Method::GET, "/api/account", Some(&ada.key), &json!(null)).await;
    assert_eq!((&read["name"], &read["timezone"]), (&json!(null), &json!("UTC")));
}

#[tokio::test]
async fn one_session_or_all_others_are_ended() {
    let api = Api::start(&["keys.cache_ttl=0s"]).await;
    let (ada, eve) = (Visitor::sign_in(&api).await, Visitor::sign_in(&api).await);
    further_sessions(&api, &ada, 3).await;
    let account = ada.account_id.to_string();
    let sessions = ids(&ada.get(PATH).await.html);
    assert_eq!(sessions.len(), 3, "this one has no button");
    let end = |id: &str| format!("/console/account/sessions/{id}/end");
    let ended = ada.post(&end(&sessions[0]), &[("account", &account)]).await;
    assert_eq!((ended.status, ended.header("location")), (StatusCode::SEE_OTHER, PATH));
    assert_eq!(ids(&ada.get(PATH).await.html).len(), 2);
    let stolen = eve.post(&end(&sessions[1]), &[("account", &eve.account_id.to_string())]).await;
    assert_eq!(stolen.status, StatusCode::NOT_FOUND);
    stolen.contains("role=\"alert\"");
    let others = ada.post("/console/account/sessions/end-others", &[("account", &account)]).await;
    assert_eq!(others.status, StatusCode::SEE_OTHER, "{}", others.html);
    let page = ada.get(PATH).await;
    assert_eq!(ids(&page.html).len(), 0);
    assert!(!page.html.contains("End all others"));
    assert_eq!(eve.get(PATH).await.status, StatusCode::OK, "another person's session stays");
}

#[tokio::test]
async fn a_change_of_the_plan_is_confirmed_and_asks_for_a_recent_sign_in() {
    let api = Api::start(&["upgrade.mode=instant", "keys.cache_ttl=0s"]).await;
    let ada = Visitor::sign_in(&api).await;
    let account = ada.account_id.to_string();
    ada.get("/console/account?plan=scale").await.contains("Change to Scale?").contains("$99 a month");
    let form = [("account", &*account), ("plan", "scale"), ("idempotency_key", "k1")];
    let changed = ada.post("/console/account/plan", &form).await;
    assert_eq!((changed.status, changed.header("location")), (StatusCode::SEE_OTHER, PATH));
    ada.get(PATH).await.contains("Change to Pro");

    let age = format!(
        "update sessions set created_at = created_at - interval '1 hour' where account_id = '{account}'"
    );
    api.execute(&age).await.unwrap();
    let form = [("account", &*account), ("plan", "free"), ("idempotency_key", "k2")];
    let headers = [("referer", "http://localhost:8080/console/account?plan=free")];
    let refused = ada.post_with("/console/account/plan", &form, &headers).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    refused.contains("/login?again=true&amp;returnTo=%2Fconsole%2Faccount%3Fplan%3Dfree");
    ada.get(PATH).await.contains("Change to Pro");
    let unknown = ada.post("/console/account/plan", &[("account", &account), ("plan", "huge")]).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn where_the_operator_changes_plans_the_page_says_how_to_ask() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    ada.get(PATH).await.contains("The operator of this service changes plans");
    let form = [("account", &*ada.account_id.to_string()), ("plan", "scale")];
    let asked = ada.post("/console/account/plan", &form).await;
    assert_eq!(asked.status, StatusCode::OK);
    asked.contains("The plan Scale is not active yet").contains("Write to the operator");
}

#[tokio::test]
async fn the_log_tells_who_changed_what_and_is_filtered() {
    let api = Api::start(&[]).await;
    let (ada, eve) = (Visitor::sign_in(&api).await, Visitor::sign_in(&api).await);
    let path = "/console/account/activity";
    ada.get(path).await.contains("Nothing was changed yet");
    let form = contact_form(&api, &ada.key).await;
    let account = ada.account_id.to_string();
    ada.post("/console/account/settings", &[("account", &account), ("name", "A"), ("timezone", "UTC")]).await;
    let page = ada.get(path).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.html);
    page.contains("Contact &lt;b&gt;us").contains("Create a form").contains("Update the account");
    page.contains("<small>Key</small>").contains("<small>Person</small>");
    page.contains("href=\"/api/activity/export\"");
    let by_key = ada.get(&format!("{path}?actorType=key&from=2026-01-01")).await;
    by_key.contains("Create a form").contains("href=\"/api/activity/export?from=2026-01-01\"");
    assert!(!by_key.html.contains("Update the account"));
    ada.get(&format!("{path}?resourceId={form}")).await.contains("Remove the filter: resource");
    ada.get(&format!("{path}?operation=pages.create")).await.contains("No such change");
    let refused = ada.get(&format!("{path}?actorType=robot")).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.html.matches("<h1").count(), 1);
    let other = eve.get(&format!("{path}?resourceId={form}")).await;
    assert!(!other.html.contains("Contact"), "another account's log");
    let file = ada.get("/api/activity/export").await;
    assert_eq!(file.status, StatusCode::OK, "the session may fetch the file");
    file.contains("forms.create");
}
