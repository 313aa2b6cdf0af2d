//! The inbox: counts, what happened after a submission, sending again, and deleting many.

use futures::future::join_all;
use http::{Method, StatusCode};
use serde_json::json;

use super::forms::{contact_form, submission};
use super::visitor::{PageResponse, Visitor};
use crate::harness::Api;

#[tokio::test]
async fn each_folder_shows_how_many_submissions_it_has() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let form = contact_form(&api, &ada.key).await;
    let mut ids = Vec::new();
    for name in ["Ada", "Charles", "Mary", "Luigi"] {
        ids.push(submission(&api, &ada.key, &form, json!({ "name": name })).await);
    }
    for (id, status) in [(&ids[0], "spam"), (&ids[1], "archived")] {
        let path = format!("/api/forms/{form}/submissions/{id}/status");
        let (done, body) = api.send(Method::POST, &path, Some(&ada.key), &json!({ "status": status })).await;
        assert_eq!(done, StatusCode::OK, "{body}");
    }
    let list = format!("/console/forms/{form}");
    let counts = |page: &PageResponse| {
        let marks = page.html.split("<span class=\"count\">").skip(1);
        marks.map(|rest| rest.split('<').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(counts(&ada.get(&list).await), ["2", "1", "1", "4"]);
    let spam = ada.get(&format!("{list}?status=spam")).await;
    spam.contains("Ada");
    assert_eq!(counts(&spam), ["2", "1", "1", "4"], "whatever the filter");
}

#[tokio::test]
async fn what_happened_then_names_the_webhook_and_sends_again() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let account = ada.account_id.to_string();
    let form = contact_form(&api, &ada.key).await;
    let id = submission(&api, &ada.key, &form, json!({ "name": "Mary" })).await;
    let path = format!("/console/forms/{form}/submissions/{id}");
    ada.get(&path).await.contains("What happened then").contains("Received and stored");

    let hook = json!({ "url": "https://crm.example/hook", "description": "<i>CRM", "formIds": [form] });
    let (status, hook) = api.send(Method::POST, "/api/webhooks", Some(&ada.key), &hook).await;
    assert_eq!(status, StatusCode::CREATED, "{hook}");
    let hook = hook["id"].as_str().unwrap();
    let delivery = "01890000-0000-7000-8000-000000000001";
    api.execute(&format!(
        "insert into deliveries (id, account_id, webhook_id, event, submission_id, payload, state, attempts, next_attempt_at,
                                 created_at, finished_at)
         values ('{delivery}', '{account}', '{hook}', 'submission.created', '{id}',
                 '{{\"type\": \"submission.created\", \"data\": {{\"submissionId\": \"{id}\"}}}}', 'failed', 10, now(), now(), now());
         insert into delivery_attempts (delivery_id, attempt, status_code, duration_ms, error_class, response_body, attempted_at)
         values ('{delivery}', 10, 503, 42, 'http_status', '<b>upstream is away', now())"
    ))
    .await
    .unwrap();
    let page = ada.get(&path).await;
    page.contains("&lt;i&gt;CRM: failed").contains("answered 503").contains("10 attempts");
    page.contains("&lt;b&gt;upstream is away");

    let fields = [("account", account.as_str()), ("webhook", hook), ("delivery", delivery)];
    let again = ada.post(&format!("{path}/retry"), &fields).await;
    assert_eq!(
        (again.status, again.header("location")),
        (StatusCode::SEE_OTHER, path.as_str()),
        "{}",
        again.html
    );
    assert!(!ada.get(&path).await.html.contains("CRM: failed"));

    let eve = Visitor::sign_in(&api).await;
    let own = eve.account_id.to_string();
    let fields = [("account", own.as_str()), ("webhook", hook), ("delivery", delivery)];
    assert_eq!(eve.post(&format!("{path}/retry"), &fields).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn many_are_deleted_after_a_question() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let account = ada.account_id.to_string();
    let form = contact_form(&api, &ada.key).await;
    let mary = submission(&api, &ada.key, &form, json!({ "name": "Mary" })).await;
    let charles = submission(&api, &ada.key, &form, json!({ "name": "Charles" })).await;
    submission(&api, &ada.key, &form, json!({ "name": "Luigi" })).await;
    let list = format!("/console/forms/{form}");
    let send = async |to: &str| {
        let fields =
            [("account", account.as_str()), ("here", &list), ("to", to), ("id", &mary), ("id", &charles)];
        ada.post(&format!("{list}/mark"), &fields).await
    };
    let asked = send("delete").await;
    assert_eq!(asked.status, StatusCode::OK);
    asked.contains("Delete 2 submissions?").contains("Nothing can be restored.").contains("Mary");
    asked.contains(&format!("name=\"id\" value=\"{mary}\""));
    assert_eq!(send("deleted").await.status, StatusCode::SEE_OTHER);
    let left = ada.get(&list).await;
    left.contains("Luigi");
    assert!(!left.html.contains("Mary") && !left.html.contains("Charles"));
}

#[tokio::test]
async fn spam_says_why_in_words() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let form = contact_form(&api, &ada.key).await;
    let id = submission(&api, &ada.key, &form, json!({ "name": "Mary" })).await;
    let spam = format!(
        "update submissions set status = 'spam', spam_reasons = array['honeypot', 'rate'] where id = '{id}'"
    );
    api.execute(&spam).await.unwrap();
    let page = ada.get(&format!("/console/forms/{form}/submissions/{id}?status=spam")).await;
    page.contains("hidden field filled in, too many from one network").contains("Held back as spam");
}

#[tokio::test]
async fn of_persons_who_save_the_same_answer_at_once_one_replaces_it_and_the_others_are_told() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let account = ada.account_id.to_string();
    let form = contact_form(&api, &ada.key).await;
    let id = submission(&api, &ada.key, &form, json!({ "name": "Mary" })).await;
    let path = format!("/console/forms/{form}/submissions/{id}");
    let edit = format!("{path}/edit");
    let shown = ada.get(&edit).await.hidden("shown.name");
    let names = ["Ada", "Charles", "Grace", "Joan", "Luigi"];
    let saved = join_all(names.map(async |name| {
        let fields = [("account", account.as_str()), ("shown.name", &shown), ("payload.name", name)];
        (name, ada.post(&edit, &fields).await)
    }))
    .await;
    let stored = ada.get(&path).await;
    for (name, page) in &saved {
        if page.status == StatusCode::SEE_OTHER {
            stored.contains(name);
        } else {
            assert_eq!(page.status, StatusCode::CONFLICT, "{}", page.html);
            page.contains("another person changed this answer").contains(&format!("value=\"{name}\""));
        }
    }
    let replaced = saved.iter().filter(|(_, page)| page.status == StatusCode::SEE_OTHER).count();
    assert_eq!(replaced, 1);
}
