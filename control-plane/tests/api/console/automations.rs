//! Automations on their pages: the list, one with its definition, and its changes.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::forms::contact_form;
use super::visitor::{PageResponse, Visitor};
use crate::automations::fixture::{Owner, http, with};

/// Creates an automation and returns its page.
async fn page_of(owner: &Owner, body: Value) -> String {
    let (path, _) = owner.automation(body).await;
    path.replace("/api/", "/console/")
}

/// Returns where a redirect leads.
#[track_caller]
fn led_to(response: &PageResponse) -> String {
    assert_eq!(response.status, StatusCode::SEE_OTHER, "{}", response.html);
    response.header("location").to_owned()
}

#[tokio::test]
async fn a_preset_makes_an_automation_that_works() {
    let owner = Owner::new(&[]).await;
    let ada = Visitor::of(&owner.api, &owner.key, owner.account_id).await;
    let page = ada.get("/console/automations").await;
    page.contains("No automation yet").contains("Answer a web request").contains("It needs a form");
    let (account, key) = (page.hidden("account"), page.hidden("idempotency_key"));
    let make = async |fields: &[(&str, &str)]| {
        let fields = [&[("account", account.as_str()), ("idempotency_key", &key)], fields].concat();
        ada.post("/console/automations", &fields).await
    };
    let made = led_to(&make(&[("preset", "answer")]).await);
    assert_eq!(
        led_to(&make(&[("preset", "answer")]).await),
        made,
        "a second post of the page makes no second one"
    );
    ada.get(&made)
        .await
        .contains("On each POST to its address")
        .contains("Answer with status")
        .contains("curl -X POST");
    let (_, list) = owner.call(Method::GET, "/api/automations", Value::Null).await;
    assert_eq!(list["automations"].as_array().unwrap().len(), 1, "{list}");
    let url = list["automations"][0]["triggerUrl"].as_str().unwrap().to_owned();
    owner.trigger(&url, &json!({ "a": 1 })).await;
    let run = owner.claim_one().await;
    owner.succeed(run.claim).await;
    ada.get("/console/automations").await.contains("Done").contains("On</span>");
    assert_eq!(make(&[("preset", "nonsense")]).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_preset_with_fields_says_what_is_missing_at_its_inputs() {
    let owner = Owner::new(&[]).await;
    let ada = Visitor::of(&owner.api, &owner.key, owner.account_id).await;
    let form = contact_form(&owner.api, &owner.key).await;
    let account = owner.account_id.to_string();
    for (preset, begins) in [("notify", "On each submission of"), ("daily", "Every day at 8:00")] {
        let (form_field, url_field) = (format!("{preset}_form"), format!("{preset}_url"));
        let make = async |url: &str| {
            let fields =
                [("account", account.as_str()), ("preset", preset), (&form_field, &form), (&url_field, url)];
            ada.post("/console/automations", &fields).await
        };
        let refused = make("").await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.html);
        refused
            .contains(&format!("href=\"#field-{url_field}\""))
            .contains(&format!("id=\"error-{url_field}\""));
        refused.contains(&format!("value=\"{form}\" selected"));
        let made = led_to(&make("https://crm.example/in").await);
        ada.get(&made).await.contains(begins).contains("POST https://crm.example/in");
    }
    ada.get("/console/automations").await.contains("Contact &lt;b&gt;us&lt;/b&gt;");
}

#[tokio::test]
async fn the_definition_is_edited_and_an_error_stands_at_its_line() {
    let owner = Owner::new(&[]).await;
    let ada = Visitor::of(&owner.api, &owner.key, owner.account_id).await;
    let page = page_of(&owner, with(http(), "name", json!("A <b>&\"</b>"))).await;
    let edit = format!("{page}/edit");
    let account = owner.account_id.to_string();
    let save = async |name: &str, definition: &str| {
        let fields = [
            ("account", account.as_str()),
            ("name", name),
            ("slug", "a"),
            ("description", "Note"),
            ("definition", definition),
        ];
        ada.post(&edit, &fields).await
    };
    ada.get(&edit).await.contains("&quot;trigger&quot;: {").contains("A &lt;b&gt;&amp;&quot;&lt;/b&gt;");

    let broken = save("A", "{\"trigger\": </textarea>").await;
    assert_eq!(broken.status, StatusCode::BAD_REQUEST);
    broken
        .contains("not JSON")
        .contains("line 1 column 13")
        .contains("{&quot;trigger&quot;: &lt;/textarea&gt;</textarea>");
    let steps =
        "{\"trigger\": {\"type\": \"http\"},\n \"steps\": [\n  {\"id\": \"call\", \"type\": \"fetch\"}]}";
    let wrong = save("New name", steps).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST, "{}", wrong.html);
    wrong
        .contains("href=\"#field-steps[0].url\"")
        .contains("id=\"field-steps[0].url\">Line 3")
        .contains("value=\"New name\"");
    let (_, list) = owner.call(Method::GET, "/api/automations", Value::Null).await;
    assert_eq!(list["automations"][0]["name"], "A <b>&\"</b>", "nothing was changed");

    let good = steps.replace("\"fetch\"", "\"fetch\", \"url\": \"https://a.test\", \"if\": \"1 < 2\"");
    assert_eq!(led_to(&save("New name", &good).await), page);
    ada.get(&page)
        .await
        .contains("New name")
        .contains("GET https://a.test")
        .contains("only if 1 &lt; 2")
        .contains("Note");
}

#[tokio::test]
async fn variables_are_set_kept_and_removed_without_being_shown() {
    let owner = Owner::new(&[]).await;
    let ada = Visitor::of(&owner.api, &owner.key, owner.account_id).await;
    let page = page_of(&owner, with(http(), "env", json!({ "TOKEN": "s3cret" }))).await;
    let account = owner.account_id.to_string();
    let change = async |fields: &[(&str, &str)]| {
        let fields = [&[("account", account.as_str()), ("kept[]", "TOKEN")], fields].concat();
        ada.post(&format!("{page}/variables"), &fields).await
    };
    led_to(&change(&[("variable", "OTHER"), ("value", "v3ry")]).await);
    let edit = ada.get(&format!("{page}/edit")).await;
    edit.contains("TOKEN").contains("OTHER");
    assert!(!edit.html.contains("s3cret") && !edit.html.contains("v3ry"), "{}", edit.html);
    led_to(&change(&[("kept[]", "OTHER"), ("remove", "TOKEN"), ("variable", "IGNORED")]).await);
    let api = page.replace("/console/", "/api/");
    assert_eq!(owner.get(&api).await["envNames"], json!(["OTHER"]));
    let refused = change(&[("variable", "not a name"), ("value", "x")]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    refused.contains("role=\"alert\"").contains("value=\"not a name\"");
}

#[tokio::test]
async fn an_automation_is_switched_off_and_on_and_deleted() {
    let owner = Owner::new(&[]).await;
    let ada = Visitor::of(&owner.api, &owner.key, owner.account_id).await;
    let page = page_of(&owner, http()).await;
    let account = owner.account_id.to_string();
    let switch = async |enabled: &str| {
        ada.post(&format!("{page}/switch"), &[("account", &account), ("enabled", enabled)]).await
    };
    assert_eq!(led_to(&switch("false").await), page);
    ada.get(&page).await.contains("Switch on");
    assert_eq!(led_to(&switch("true").await), page);
    ada.get(&page).await.contains("Switch off");
    assert_eq!(
        led_to(&ada.post(&format!("{page}/delete"), &[("account", &account)]).await),
        "/console/automations"
    );
    assert_eq!(ada.get(&page).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_test_leads_to_its_run() {
    let owner = Owner::new(&["automations.test_timeout=1ms"]).await;
    let ada = Visitor::of(&owner.api, &owner.key, owner.account_id).await;
    let page = page_of(&owner, http()).await;
    let account = owner.account_id.to_string();
    let test = async |data: &str| {
        ada.post(&format!("{page}/test"), &[("account", &account), ("triggerData", data)]).await
    };
    let refused = test("{a}").await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    refused.contains("id=\"error-triggerData\"").contains("This is not JSON").contains(">{a}</textarea>");
    let run = led_to(&test("{\"a\": \"<i>\"}").await);
    ada.get(&run)
        .await
        .contains("Run by a test")
        .contains("Queued")
        .contains("&lt;i&gt;")
        .contains("Cancel the run");
}

#[tokio::test]
async fn another_accounts_automation_is_not_found_and_not_changed() {
    let owner = Owner::new(&[]).await;
    let page = page_of(&owner, http()).await;
    let eve = Visitor::sign_in(&owner.api).await;
    let account = eve.account_id.to_string();
    for path in ["", "/edit", "/runs"] {
        let page = eve.get(&format!("{page}{path}")).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}");
    }
    let definition = "{\"trigger\": {\"type\": \"http\"}, \"steps\": [{\"id\": \"end\", \"type\": \"stop\", \"status\": \"success\"}]}";
    for path in ["/edit", "/variables", "/switch", "/test", "/delete"] {
        let fields =
            [("account", account.as_str()), ("enabled", "false"), ("name", "E"), ("definition", definition)];
        let refused = eve.post(&format!("{page}{path}"), &fields).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{path}: {}", refused.html);
    }
    let switched = [("account", owner.account_id.to_string()), ("enabled", "false".to_owned())];
    let switched = switched.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(eve.post(&format!("{page}/switch"), &switched).await.status, StatusCode::CONFLICT);
    let api = page.replace("/console/", "/api/");
    assert_eq!(owner.get(&api).await["enabled"], true);
    let nonsense = eve.get("/console/automations/nonsense").await;
    assert!(nonsense.status.is_client_error(), "{}", nonsense.status);
}
