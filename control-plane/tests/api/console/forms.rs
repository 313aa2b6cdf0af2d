//! The list of forms, and the submissions of one.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::visitor::Visitor;
use crate::harness::Api;

/// Texts that would run, deceive or break a page.
const HOSTILE: [&str; 4] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(document.cookie)>",
    "{{ env.TOKEN }}{% include 'shell.html' %}",
    "report\u{202e}fdp.exe\u{7}",
];

/// Makes a form and returns its id.
pub(super) async fn contact_form(api: &Api, key: &str) -> String {
    let body = json!({ "name": "Contact <b>us</b>", "fields": [
        { "type": "text", "name": "name", "label": "Name" },
        { "type": "email", "name": "email", "label": "E-mail" },
        { "type": "url", "name": "site", "label": "Site" },
        { "type": "textarea", "name": "message", "label": "Message" }] });
    let (status, form) = api.send(Method::POST, "/api/forms", Some(key), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{form}");
    form["formId"].as_str().unwrap().to_owned()
}

/// Stores a submission and returns its id.
pub(super) async fn submission(api: &Api, key: &str, form: &str, payload: Value) -> String {
    let body = json!({ "externalId": format!("e{}", api.next_number()), "payload": payload });
    let path = format!("/api/forms/{form}/submissions/upsert");
    let (status, stored) = api.send(Method::PUT, &path, Some(key), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{stored}");
    stored["data"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn strangers_texts_are_text() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let form = contact_form(&api, &ada.key).await;
    let mut ids = Vec::new();
    for text in HOSTILE {
        let payload = json!({ "name": text, "message": text, "site": "https://a.test/?<b>" });
        ids.push(submission(&api, &ada.key, &form, payload).await);
    }
    let list = format!("/console/forms/{form}");
    let mut pages = vec!["/console".to_owned(), "/console/forms".to_owned(), list.clone()];
    pages.push(format!("{list}?search=%22%3E%3Cscript%3E"));
    pages.extend(ids.iter().map(|id| format!("{list}/submissions/{id}")));
    for path in &pages {
        let page = ada.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        for forbidden in ["<script>", "<img", "<b>us", "\u{202e}", "\u{7}", "onerror=alert(document.cookie)>"]
        {
            assert!(!page.html.contains(forbidden), "{path} has {forbidden:?}");
        }
    }
    let page = ada.get(&pages[4]).await;
    page.contains("&lt;script&gt;alert(1)&lt;/script&gt;").contains("dir=\"auto\"");
    page.contains("rel=\"noopener noreferrer nofollow ugc\"");
    ada.get(&pages[6]).await.contains("{{ env.TOKEN }}");
    ada.get(&pages[7]).await.contains("report⟨U+202E⟩fdp.exe␇");
}

#[tokio::test]
async fn a_submission_is_read_archived_and_deleted() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let form = contact_form(&api, &ada.key).await;
    let payload = json!({ "name": "Mary", "email": "mary@a.test", "message": "Eleven pupils" });
    let mary = submission(&api, &ada.key, &form, payload).await;
    let charles = submission(&api, &ada.key, &form, json!({ "name": "Charles", "message": "Gears" })).await;
    let list = format!("/console/forms/{form}");
    let page = ada.get(&format!("{list}/submissions/{mary}")).await;
    page.contains("Eleven pupils").contains("mailto:mary@a.test").contains("aria-current=\"true\"");
    page.contains(&format!("/console/forms/{form}/submissions/{charles}"));

    let (account, here) = (page.hidden("account"), format!("{list}?status=all"));
    let mark = |to: &'static str, id: String| {
        let (ada, account, list, here) = (&ada, account.clone(), list.clone(), here.clone());
        async move {
            let fields = [("account", account.as_str()), ("here", &here), ("to", to), ("id", &id)];
            ada.post(&format!("{list}/mark"), &fields).await
        }
    };
    let done = mark("archived", mary.clone()).await;
    assert_eq!((done.status, done.header("location")), (StatusCode::SEE_OTHER, here.as_str()));
    assert!(!ada.get(&list).await.html.contains("Mary"));
    let archive =
        ada.get_with(&format!("{list}?status=archived"), &[("cookie", "console-flash=archived")]).await;
    archive.contains("Mary");
    let flash = ada.get_with(&list, &[("cookie", &format!("{}; console-flash=archived", ada.cookie))]).await;
    flash.contains("Charles");

    assert_eq!(mark("deleted", charles.clone()).await.status, StatusCode::SEE_OTHER);
    let gone = mark("spam", charles).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND, "{}", gone.html);
    gone.contains("role=\"alert\"").contains("autofocus");
    assert_eq!(mark("nonsense", mary).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_search_without_a_match_and_an_unknown_submission_say_so() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let form = contact_form(&api, &ada.key).await;
    submission(&api, &ada.key, &form, json!({ "name": "Mary" })).await;
    let list = format!("/console/forms/{form}");
    ada.get(&format!("{list}?search=nothing%20here")).await.contains("Nothing matches");
    ada.get(&format!("{list}?status=spam")).await.contains("No spam.");
    let missing = ada.get(&format!("{list}/submissions/{form}")).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    missing.contains("Mary").contains("Not found");
}

#[tokio::test]
async fn the_script_gets_the_reading_pane_alone() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let form = contact_form(&api, &ada.key).await;
    let id = submission(&api, &ada.key, &form, json!({ "name": "Mary" })).await;
    let path = format!("/console/forms/{form}/submissions/{id}");
    let part = ada.get_with(&path, &[("x-part", "#pane")]).await;
    part.contains("id=\"pane\"").contains("Mary");
    assert!(!part.html.contains("<html"), "{}", part.html);
    let other = ada.get_with(&path, &[("x-part", "#nothing")]).await;
    other.contains("<html");
}
