//! The form builder: its presets, its posts, and the drafts for the edge's preview.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::visitor::{PageResponse, Visitor, send};
use crate::harness::Api;

const NEW: &str = "/console/forms/new";
const PREVIEW: &str = "/console/forms/preview";

/// The inputs of two questions.
const QUESTIONS: [(&str, &str); 10] = [
    ("name", "Survey"),
    ("fields[0].type", "text"),
    ("fields[0].label", "Your name"),
    ("fields[0].name", "name"),
    ("fields[0].required", "on"),
    ("fields[1].type", "select"),
    ("fields[1].label", "Plan"),
    ("fields[1].name", "plan"),
    ("fields[1].options", "A\r\nB\r\n"),
    ("fields[1].min", "3"),
];

/// Posts the questions with other fields after them, of which the last one of a name counts.
async fn post(ada: &Visitor<'_>, path: &str, account: &str, more: &[(&str, &str)]) -> PageResponse {
    let fields = [&[("account", account)], QUESTIONS.as_slice(), more].concat();
    ada.post(path, &fields).await
}

async fn stored(api: &Api, ada: &Visitor<'_>, id: &str) -> Value {
    let (status, form) =
        api.send(Method::GET, &format!("/api/forms/{id}"), Some(&ada.key), &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{form}");
    form
}

/// Makes the form of [`QUESTIONS`] and returns its id.
async fn make(ada: &Visitor<'_>, account: &str) -> String {
    let made = post(ada, NEW, account, &[("action", "save")]).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.html);
    let location = made.header("location");
    location.trim_start_matches("/console/forms/").trim_end_matches("/details").to_owned()
}

#[tokio::test]
async fn a_form_begins_with_a_preset_and_is_stored_once_it_is_saved() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let start = ada.get(NEW).await;
    start.contains("Empty form").contains("?preset=rsvp").contains("?preset=preorder");
    let page = ada.get(&format!("{NEW}?preset=rsvp")).await;
    page.contains("value=\"dietary\"").contains("formaction=\"/f/preview\"").contains("sandbox");
    let account = page.hidden("account");
    let unknown = ada.get(&format!("{NEW}?preset=nothing")).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);

    let added = post(&ada, NEW, &account, &[("action", "add"), ("newType", "email")]).await;
    assert_eq!(added.status, StatusCode::OK);
    added.contains("Question 3").contains("value=\"question_3\"").contains("autofocus");
    let moved = post(&ada, NEW, &account, &[("action", "up:1")]).await;
    let (plan, name) = (moved.html.find("value=\"Plan\""), moved.html.find("value=\"Your name\""));
    assert!(plan.unwrap() < name.unwrap(), "{}", moved.html);
    let removed = post(&ada, NEW, &account, &[("action", "remove:0")]).await;
    assert!(!removed.html.contains("Your name"));
    let (_, list) = api.send(Method::GET, "/api/forms", Some(&ada.key), &Value::Null).await;
    assert_eq!(list["forms"], json!([]), "nothing is stored before it is saved");

    let form = stored(&api, &ada, &make(&ada, &account).await).await;
    let expected = json!([{ "type": "text", "label": "Your name", "name": "name", "required": true },
        { "type": "select", "label": "Plan", "name": "plan", "options": ["A", "B"] }]);
    assert_eq!((&form["fields"], &form["name"]), (&expected, &json!("Survey")));
    ada.get(&format!("{NEW}?from={}", form["id"].as_str().unwrap())).await.contains("Survey (copy)");
}

#[tokio::test]
async fn a_refused_form_keeps_its_values_and_says_why_at_its_inputs() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let account = ada.get(&format!("{NEW}?preset=empty")).await.hidden("account");
    let wrong = [
        ("action", "save"),
        ("name", ""),
        ("fields[1].label", ""),
        ("fields[1].options", "A\nA"),
        ("redirectUrl", "javascript:alert(1)"),
        ("spam.perDay", "-1"),
        ("fields[0].showIf.field", "later"),
        ("fields[0].placeholder", "kept text"),
    ];
    let page = post(&ada, NEW, &account, &wrong).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST, "{}", page.html);
    page.contains("role=\"alert\"").contains("kept text").contains("javascript:alert(1)");
    for (input, message) in [
        ("name", "The name must not be empty"),
        ("fields[1].label", "Question 2: the label must not be empty"),
        ("fields[1].options", "Question 2: options must differ"),
        ("redirectUrl", "The address to go to must be a http(s) address"),
        ("spam.perDay", "must be 0 to"),
    ] {
        page.contains(&format!("href=\"#field-{input}\""));
        page.contains(&format!("id=\"field-{input}\""));
        page.contains(&format!("id=\"error-{input}\"")).contains(message);
    }
    page.contains("id=\"field-fields[0].showIf.field\"");
    let none = ada.post(NEW, &[("account", &account), ("name", "Empty"), ("action", "save")]).await;
    assert_eq!(none.status, StatusCode::BAD_REQUEST);
    none.contains("a form needs 1 to 100 fields").contains("No question yet.");
}

#[tokio::test]
async fn a_form_that_another_page_saved_is_not_overwritten_unseen() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let account = ada.account_id.to_string();
    let id = make(&ada, &account).await;
    let path = format!("/console/forms/{id}/edit");
    let page = ada.get(&path).await;
    page.contains("value=\"Your name\"").contains("A\nB");
    let version = page.hidden("version");
    let (status, _) =
        api.send(Method::PUT, &format!("/api/forms/{id}"), Some(&ada.key), &json!({ "name": "Other" })).await;
    assert_eq!(status, StatusCode::OK);

    let mine = [("action", "save"), ("version", version.as_str()), ("successMessage", "Mine")];
    let stale = post(&ada, &path, &account, &mine).await;
    assert_eq!(stale.status, StatusCode::CONFLICT);
    stale.contains("Another version was saved").contains("Mine").contains("value=\"overwrite\"");
    assert_eq!(stored(&api, &ada, &id).await["name"], "Other");
    assert_eq!(stale.hidden("version"), version);

    let saved = post(&ada, &path, &account, &[&mine[1..], &[("action", "overwrite")]].concat()).await;
    assert_eq!((saved.status, saved.header("location")), (StatusCode::SEE_OTHER, path.as_str()));
    let form = stored(&api, &ada, &id).await;
    assert_eq!((&form["name"], &form["successMessage"]), (&json!("Survey"), &json!("Mine")));
    let current = ada.get(&path).await.hidden("version");
    let saved = post(&ada, &path, &account, &[("action", "save"), ("version", &current)]).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.html);
}

#[tokio::test]
async fn webhooks_are_linked_and_texts_are_text() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let account = ada.account_id.to_string();
    let id = make(&ada, &account).await;
    let hook = json!({ "url": "https://crm.example/hook", "description": "<b>CRM", "formIds": [id] });
    let (status, hook) = api.send(Method::POST, "/api/webhooks", Some(&ada.key), &hook).await;
    assert_eq!(status, StatusCode::CREATED, "{hook}");
    let path = format!("/console/forms/{id}/edit");
    ada.get(&path)
        .await
        .contains("&lt;b&gt;CRM")
        .contains(&format!("value=\"{}\" checked", hook["id"].as_str().unwrap()));
    // Without the list, the links stay; with it, those that are not checked go.
    let save = async |more: &[(&str, &str)]| {
        let fields = [&[("action", "save"), ("version", "")], more].concat();
        assert_eq!(post(&ada, &path, &account, &fields).await.status, StatusCode::SEE_OTHER);
        stored(&api, &ada, &id).await["webhookIds"].as_array().unwrap().len()
    };
    assert_eq!(save(&[]).await, 1);
    assert_eq!(save(&[("webhookIds[]", "")]).await, 0);

    let hostile = "\"><script>alert(1)</script></textarea>";
    let texts = [
        "name",
        "fields[0].label",
        "fields[1].options",
        "fields[0].help",
        "fields[0].name",
        "successMessage",
    ];
    let fields: Vec<_> = texts.iter().map(|name| (*name, hostile)).chain([("action", "copy:0")]).collect();
    let page = post(&ada, &path, &account, &fields).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(!page.html.contains("<script>alert"), "{}", page.html);
    page.contains("&lt;script&gt;alert(1)");
}

#[tokio::test]
async fn a_form_is_put_into_a_folder_and_shows_its_entries_on_a_page() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let account = ada.account_id.to_string();
    let id = make(&ada, &account).await;
    let create = async |path: &str, body: Value| {
        let (status, made) = api.send(Method::POST, path, Some(&ada.key), &body).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        made["id"].as_str().unwrap().to_owned()
    };
    let folder = create("/api/folders", json!({ "name": "<i>Society" })).await;
    let page = json!({ "slug": "guests", "title": "Guests", "html": "<main></main>" });
    let plain = create("/api/pages", page).await;
    let template = json!({ "slug": "book", "title": "Book", "html": "<main data-entries></main>",
        "entryTemplate": "<p>{{name}}</p>" });
    let book = create("/api/pages", template).await;

    let path = format!("/console/forms/{id}/edit");
    ada.get(&path).await.contains("&lt;i&gt;Society").contains("Book (/book)").contains("No logo");
    let save = async |more: &[(&str, &str)]| {
        let fields = [&[("action", "save"), ("version", "")], more].concat();
        post(&ada, &path, &account, &fields).await
    };
    let refused = save(&[("folderId", &folder), ("autoEntryPageId", &plain)]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    refused.contains("id=\"error-autoEntryPageId\"").contains("no entryTemplate");
    refused.contains(&format!("value=\"{folder}\" selected"));
    let saved = save(&[("folderId", &folder), ("autoEntryPageId", &book)]).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.html);
    let form = stored(&api, &ada, &id).await;
    assert_eq!((&form["folderId"], &form["autoEntryPageId"]), (&json!(folder), &json!(book)));
    // A page without these inputs leaves them; empty ones clear them.
    assert_eq!(save(&[]).await.status, StatusCode::SEE_OTHER);
    assert_eq!(stored(&api, &ada, &id).await["autoEntryPageId"], json!(book));
    assert_eq!(save(&[("folderId", ""), ("autoEntryPageId", "")]).await.status, StatusCode::SEE_OTHER);
    let form = stored(&api, &ada, &id).await;
    assert_eq!((&form["folderId"], &form["autoEntryPageId"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn forms_of_another_account_are_not_there() {
    let api = Api::start(&[]).await;
    let (ada, eve) = (Visitor::sign_in(&api).await, Visitor::sign_in(&api).await);
    let id = make(&ada, &ada.account_id.to_string()).await;
    let own = eve.account_id.to_string();
    for path in [
        format!("/console/forms/{id}/edit"),
        format!("{NEW}?from={id}"),
        format!("/console/forms/{id}/details"),
    ] {
        let page = eve.get(&path).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}");
        assert!(!page.html.contains("Survey"), "{path}");
    }
    for end in ["edit", "close", "open", "delete"] {
        let page = post(&eve, &format!("/console/forms/{id}/{end}"), &own, &[("action", "save")]).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{end}");
    }
    assert_eq!(stored(&api, &ada, &id).await["status"], "open");
}

#[tokio::test]
async fn csrf_of_a_draft_and_a_draft_without_a_session_are_refused() {
    let api = Api::start(&[]).await;
    let (ada, eve) = (Visitor::sign_in(&api).await, Visitor::sign_in(&api).await);
    let account = ada.account_id.to_string();
    let answer = post(&ada, PREVIEW, &account, &[]).await;
    assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, "application/json"));
    let draft: Value = serde_json::from_str(&answer.html).unwrap();
    assert_eq!((&draft["account_id"], &draft["plan"]), (&json!(account), &json!("pro")));
    assert_eq!(draft["form"]["fields"][1]["options"], json!(["A", "B"]));
    let (_, list) = api.send(Method::GET, "/api/forms", Some(&ada.key), &Value::Null).await;
    assert_eq!(list["forms"], json!([]), "nothing is stored");

    let fields = [&[("account", account.as_str())], QUESTIONS.as_slice()].concat();
    let foreign = ada.post_from("https://evil.test", PREVIEW, &fields).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    let of_another = eve.post(PREVIEW, &fields).await;
    assert_eq!(of_another.status, StatusCode::CONFLICT);
    let headers = [("origin", super::visitor::BASE), ("content-type", "application/x-www-form-urlencoded")];
    let stranger = send(&api, Method::POST, PREVIEW, &headers, "account=x&name=F").await;
    assert_eq!(stranger.status, StatusCode::SEE_OTHER);
    assert!(stranger.header("location").starts_with("/login"), "{}", stranger.header("location"));
    for refused in [foreign, of_another, stranger] {
        assert!(!refused.html.contains("Your name"), "{}", refused.html);
    }
}
