//! Form updates: given fields change, the result must be a valid form, and linked resources must be
//! accessible to the caller.

use chrono::{TimeDelta, Utc};
use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use service::Clock;
use uuid::Uuid;

use crate::harness::Api;

fn form() -> Value {
    json!({"name": "F", "fields": [
        {"name": "email", "label": "E-mail", "type": "email"},
        {"name": "cv", "label": "CV", "type": "file"},
    ]})
}

fn with(mut whole: Value, part: &Value) -> Value {
    whole.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    whole
}

async fn post(api: &Api, key: &str, path: &str, body: &Value) -> (StatusCode, Value) {
    api.send(Method::POST, path, Some(key), body).await
}

async fn create(api: &Api, key: &str, path: &str, body: &Value) -> String {
    let (status, response) = post(api, key, path, body).await;
    assert_eq!(status, StatusCode::CREATED, "{response}");
    response["formId"].as_str().or(response["id"].as_str()).unwrap().to_owned()
}

async fn put(api: &Api, key: &str, id: &str, body: &Value) -> (StatusCode, Value) {
    api.send(Method::PUT, &format!("/api/forms/{id}"), Some(key), body).await
}

async fn read(api: &Api, key: &str, id: &str) -> Value {
    api.send(Method::GET, &format!("/api/forms/{id}"), Some(key), &Value::Null).await.1
}

fn fields(problem: &Value) -> Vec<&str> {
    let errors = problem["fieldErrors"].as_array().map(Vec::as_slice).unwrap_or_default();
    errors.iter().map(|error| error["field"].as_str().unwrap()).collect()
}

async fn page(api: &Api, key: &str, slug: &str, template: Option<&str>) -> String {
    let page = json!({"slug": slug, "title": "P", "html": "x", "entryTemplate": template});
    create(api, key, "/api/pages", &page).await
}

#[tokio::test]
async fn every_setting_is_stored_as_given_and_null_clears_it() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Scale).await;
    // Mails to other addresses need a claimed account.
    api.execute("update accounts set claimed_at = now()").await.unwrap();
    let page = page(&api, &key, "guests", Some("<p>{{email}}</p>")).await;
    let folder = create(&api, &key, "/api/folders", &json!({"name": "Folder"})).await;
    let settings = json!({
        "name": "G", "successMessage": "Merci", "submitLabel": "Envoyer", "redirectUrl": "https://example.com/x",
        "closesAt": "2999-01-01T00:00:00Z", "uniqueBy": ["email"], "maxSubmissions": 7.0, "publicResults": true,
        "folderId": folder, "autoEntryPageId": page, "notifyEmail": "me@example.com",
        "unknownFields": "store",
        "spam": {"honeypot": false, "minSeconds": 5, "proofOfWork": true, "perMinute": 7, "perDay": 0},
    });
    let plain = create(&api, &key, "/api/forms", &form()).await;
    let bare = read(&api, &key, &plain).await;
    assert_eq!(
        bare["spam"],
        json!({"honeypot": true, "minSeconds": 2, "proofOfWork": false, "perMinute": null, "perDay": null})
    );
    assert_eq!(
        (&bare["status"], &bare["publicResults"], &bare["uniqueBy"]),
        (&json!("open"), &json!(false), &Value::Null)
    );
    assert_eq!(bare["unknownFields"], "ignore");

    let shown = with(settings.clone(), &json!({"maxSubmissions": 7}));
    let at_once = create(&api, &key, "/api/forms", &with(form(), &settings)).await;
    let (status, edited) = put(&api, &key, &plain, &settings).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    for form in [read(&api, &key, &at_once).await, read(&api, &key, &plain).await, edited] {
        for (name, value) in shown.as_object().unwrap() {
            assert_eq!(&form[name], value, "{name}");
        }
    }
    let nulls = json!({"successMessage": null, "submitLabel": null, "redirectUrl": null, "closesAt": null,
        "uniqueBy": null, "maxSubmissions": null, "folderId": null, "autoEntryPageId": null, "notifyEmail": null});
    let (status, cleared) = put(&api, &key, &plain, &nulls).await;
    assert_eq!(status, StatusCode::OK, "{cleared}");
    for (name, value) in nulls.as_object().unwrap() {
        assert_eq!(&cleared[name], value, "{name}");
    }
    assert_eq!(cleared["unknownFields"], "store", "it has no null");
    let (_, stored) = put(&api, &key, &plain, &json!({"spam": {"minSeconds": 0, "perMinute": null}})).await;
    let spam =
        json!({"honeypot": false, "minSeconds": 0, "proofOfWork": true, "perMinute": null, "perDay": 0});
    assert_eq!(stored["spam"], spam);
    assert_eq!(
        (&stored["name"], &stored["publicResults"]),
        (&json!("G"), &json!(true)),
        "omitted settings are unchanged"
    );
}

#[tokio::test]
async fn the_result_of_an_update_must_be_a_valid_form() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let id = create(&api, &key, "/api/forms", &with(form(), &json!({"uniqueBy": ["email"]}))).await;
    let before = read(&api, &key, &id).await;
    let other = json!([{"name": "a", "label": "A", "type": "text"}]);
    for (edit, place) in [
        (json!({"fields": other}), "uniqueBy[0]"),
        (json!({"uniqueBy": ["phone"]}), "uniqueBy[0]"),
        (json!({"uniqueBy": ["cv"]}), "uniqueBy[0]"),
        (json!({"uniqueBy": ["email", "email"]}), "uniqueBy[1]"),
        (json!({"name": ""}), "name"),
        (json!({"fields": []}), "fields"),
        (json!({"redirectUrl": "javascript:alert(1)"}), "redirectUrl"),
        (json!({"notifyEmail": "me"}), "notifyEmail"),
        (json!({"spam": {"minSeconds": 61}}), "spam.minSeconds"),
        (json!({"spam": {"perMinute": -1}}), "spam.perMinute"),
        (json!({"spam": {"perDay": 99_999_999_999_i64}}), "spam.perDay"),
        (json!({"spam": {"minSeconds": 99_999_999_999_i64}}), "spam.minSeconds"),
        (json!({"maxSubmissions": 1.5}), "maxSubmissions"),
        (json!({"unknownFields": "forward"}), "unknownFields"),
        (json!({"closesAt": "+012345-01-01T00:00:00Z"}), "closesAt"),
    ] {
        let (status, problem) = put(&api, &key, &id, &edit).await;
        assert_eq!((status, fields(&problem)), (StatusCode::BAD_REQUEST, vec![place]), "{edit} {problem}");
        let (status, problem) =
            post(&api, &key, "/api/forms", &with(with(form(), &json!({"uniqueBy": ["email"]})), &edit)).await;
        assert_eq!((status, fields(&problem)), (StatusCode::BAD_REQUEST, vec![place]), "{edit} {problem}");
    }
    let (status, edited) = put(&api, &key, &id, &json!({"fields": other, "uniqueBy": ["a"]})).await;
    let mut fields = form()["fields"].clone();
    fields[1]["effectiveMaxFileSize"] = before["fields"][1]["effectiveMaxFileSize"].clone();
    assert_eq!((status, &edited["fields"], &before["fields"]), (StatusCode::OK, &other, &fields));
}

#[tokio::test]
async fn a_preset_provides_name_and_fields() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let id = create(&api, &key, "/api/forms", &json!({"workflowId": "rsvp", "maxSubmissions": 3})).await;
    let form = read(&api, &key, &id).await;
    let preset = domain::workflows::find("rsvp").unwrap();
    assert_eq!((&form["name"], &form["maxSubmissions"]), (&json!(preset.name), &json!(3)));
    assert_eq!(form["fields"], json!(preset.fields()));
    let id = create(&api, &key, "/api/forms", &json!({"workflowId": "rsvp", "name": "Party"})).await;
    assert_eq!(read(&api, &key, &id).await["name"], "Party");
    let (status, problem) = post(&api, &key, "/api/forms", &json!({"workflowId": "party"})).await;
    assert_eq!((status, fields(&problem)), (StatusCode::BAD_REQUEST, vec!["workflowId"]));
    let (status, problem) = post(&api, &key, "/api/forms", &json!({})).await;
    assert_eq!((status, fields(&problem)), (StatusCode::BAD_REQUEST, vec!["name", "fields"]), "{problem}");
}

#[tokio::test]
async fn a_closing_time_without_a_zone_is_one_of_the_account() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let at = |at: &str| json!({"closesAt": at});
    let (_, created) = post(&api, &key, "/api/forms", &with(form(), &at("2030-01-01"))).await;
    assert_eq!(
        created["closesAt"], "2030-01-01T00:00:00Z",
        "an account's time zone is UTC at first: {created}"
    );
    let zone = json!({"timezone": "Europe/Berlin"});
    assert_eq!(api.send(Method::PUT, "/api/account", Some(&key), &zone).await.0, StatusCode::OK);
    for (text, instant) in [
        ("2030-01-01", "2029-12-31T23:00:00Z"),
        ("2030-01-01T10:00", "2030-01-01T09:00:00Z"),
        ("2030-07-01T10:00:30", "2030-07-01T08:00:30Z"),
        ("2030-07-01T10:00Z", "2030-07-01T10:00:00Z"),
        // Skipped by the clock: the later instant. Shown twice: the earlier one.
        ("2030-03-31T02:30", "2030-03-31T01:30:00Z"),
        ("2030-10-27T02:30", "2030-10-27T00:30:00Z"),
    ] {
        let (status, created) = post(&api, &key, "/api/forms", &with(form(), &at(text))).await;
        assert_eq!(
            (status, &created["closesAt"]),
            (StatusCode::CREATED, &json!(instant)),
            "{text}: {created}"
        );
        let id = created["formId"].as_str().unwrap();
        assert_eq!(put(&api, &key, id, &json!({"closesAt": null})).await.1["closesAt"], Value::Null);
        assert_eq!(put(&api, &key, id, &at(text)).await.1["closesAt"], instant, "{text}");
        assert_eq!(put(&api, &key, id, &json!({"name": "G"})).await.1["closesAt"], instant, "unchanged");
        assert_eq!(
            api.send(Method::DELETE, &format!("/api/forms/{id}"), Some(&key), &Value::Null).await.0,
            200
        );
    }
    let wrong = with(form(), &json!({"closesAt": "next friday", "maxSubmissions": 0}));
    let (status, problem) = post(&api, &key, "/api/forms", &wrong).await;
    assert_eq!((status, fields(&problem)), (StatusCode::BAD_REQUEST, vec!["maxSubmissions", "closesAt"]));
    let message = problem["fieldErrors"][1]["message"].as_str().unwrap();
    assert!(message.contains("2030-01-31T18:00") && message.contains("Europe/Berlin"), "{message}");
    let id = created["formId"].as_str().unwrap();
    let (status, problem) = put(&api, &key, id, &at("soon")).await;
    assert_eq!((status, fields(&problem)), (StatusCode::BAD_REQUEST, vec!["closesAt"]));
}

#[tokio::test]
async fn a_file_field_shows_the_limit_of_the_plan_and_can_be_sent_back() {
    let api = Api::start(&[]).await;
    let (key, account_id) = api.trial_on(Plan::Free).await;
    let file = |name: &str, max: Option<u64>| json!({"name": name, "label": "L", "type": "file", "maxFileSize": max});
    let fields = json!([file("any", None), file("small", Some(1_000)), file("large", Some(10_485_760))]);
    let id = create(&api, &key, "/api/forms", &json!({"name": "F", "fields": fields})).await;
    let limits = |form: &Value| {
        let fields = form["fields"].as_array().unwrap().iter();
        fields.map(|field| field["effectiveMaxFileSize"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let plan = |plan: Plan| u64::try_from(plan.limits().asset_size_limit).unwrap();
    let shown = read(&api, &key, &id).await;
    assert_eq!(limits(&shown), [plan(Plan::Free), 1_000, plan(Plan::Free)]);
    assert_eq!(shown["fields"][2]["maxFileSize"], 10_485_760);
    let (status, updated) = put(&api, &key, &id, &json!({"fields": shown["fields"]})).await;
    assert_eq!((status, &updated["fields"]), (StatusCode::OK, &shown["fields"]), "{updated}");
    api.set_plan(account_id, Plan::Pro).await;
    assert_eq!(limits(&read(&api, &key, &id).await), [plan(Plan::Pro), 1_000, 10_485_760]);
}

#[tokio::test]
async fn a_form_can_be_closed_full_and_reopened() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let id = create(&api, &key, "/api/forms", &with(form(), &json!({"maxSubmissions": 1}))).await;
    let submit = async |name: &str| {
        let path = format!("/api/forms/{id}/submissions/upsert");
        let (status, response) =
            api.send(Method::PUT, &path, Some(&key), &json!({"externalId": name, "payload": {}})).await;
        (status.as_u16(), response["code"].as_str().unwrap_or_default().to_owned())
    };
    let status = async |edit: Value| put(&api, &key, &id, &edit).await.1["status"].clone();
    assert_eq!(submit("1").await, (201, String::new()));
    assert_eq!(read(&api, &key, &id).await["status"], "full");
    assert_eq!(submit("2").await, (410, "form_full".to_owned()));
    assert_eq!(status(json!({"maxSubmissions": 2})).await, "open");
    let past = Clock::system().now() - TimeDelta::seconds(1);
    assert_eq!(status(json!({"closesAt": past})).await, "closed");
    assert_eq!(submit("2").await, (410, "form_closed".to_owned()));
    assert_eq!(status(json!({"closesAt": past + TimeDelta::hours(1)})).await, "open");
    assert_eq!(submit("2").await, (201, String::new()));
    assert_eq!(status(json!({"maxSubmissions": null, "closesAt": null})).await, "open");
    assert_eq!(submit("3").await, (201, String::new()));
}

#[tokio::test]
async fn an_update_relinks_only_webhooks_that_the_caller_can_access() {
    let api = Api::start(&[]).await;
    let (key, account_id) = api.trial_on(Plan::Scale).await;
    let folder = create(&api, &key, "/api/folders", &json!({"name": "Folder"})).await;
    let form_id = create(&api, &key, "/api/forms", &with(form(), &json!({"folderId": folder}))).await;
    let outside = create(&api, &key, "/api/forms", &form()).await;
    let hook = async |forms: &[&str]| {
        create(&api, &key, "/api/webhooks", &json!({"url": "https://example.com/hook", "formIds": forms}))
            .await
    };
    let (first, second) = (hook(&[&form_id]).await, hook(&[&form_id]).await);
    let shared = hook(&[&form_id, &outside]).await;
    assert_eq!(read(&api, &key, &form_id).await["webhookIds"], json!([first, second, shared]));

    // The webhook has no folder, since one of its forms has none.
    let restrictions = Restrictions { folder_id: Some(folder.parse().unwrap()), ..Restrictions::default() };
    let (_, restricted) = api.insert_key(account_id, ScopeSet::FULL, restrictions, None).await;
    assert_eq!(read(&api, &restricted, &form_id).await["webhookIds"], json!([first, second]));
    let (status, _) = put(&api, &restricted, &form_id, &json!({"webhookIds": [shared]})).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let (status, edited) = put(&api, &restricted, &form_id, &json!({"webhookIds": [second]})).await;
    assert_eq!((status, &edited["webhookIds"]), (StatusCode::OK, &json!([second])));
    assert_eq!(
        read(&api, &key, &form_id).await["webhookIds"],
        json!([second, shared]),
        "the inaccessible webhook stays linked"
    );
    let (_, emptied) = put(&api, &key, &form_id, &json!({"webhookIds": []})).await;
    assert_eq!(emptied["webhookIds"], json!([]));
    assert_eq!(
        read(&api, &key, &outside).await["webhookIds"],
        json!([shared]),
        "other forms keep their webhooks"
    );
    let (_, list) = api.send(Method::GET, "/api/forms", Some(&key), &Value::Null).await;
    assert_eq!(list["forms"][1]["webhookIds"], json!([shared]));
}

#[tokio::test]
async fn the_entry_page_must_belong_to_the_account_and_have_a_template() {
    let api = Api::start(&[]).await;
    let (key, other_key) = (api.trial().await, api.trial().await);
    let id = create(&api, &key, "/api/forms", &form()).await;
    let bare = page(&api, &key, "bare", None).await;
    let (status, problem) = put(&api, &key, &id, &json!({"autoEntryPageId": bare})).await;
    assert_eq!((status, fields(&problem)), (StatusCode::BAD_REQUEST, vec!["autoEntryPageId"]));
    let foreign = page(&api, &other_key, "foreign", Some("x")).await;
    for page in [foreign.as_str(), &Uuid::nil().to_string()] {
        let (status, problem) = put(&api, &key, &id, &json!({"autoEntryPageId": page})).await;
        assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
    }
    let guests = page(&api, &key, "guests", Some("x")).await;
    assert_eq!(put(&api, &key, &id, &json!({"autoEntryPageId": guests})).await.0, StatusCode::OK);
    api.send(Method::DELETE, &format!("/api/pages/{guests}"), Some(&key), &Value::Null).await;
    let (status, edited) = put(&api, &key, &id, &json!({"name": "G"})).await;
    assert_eq!(
        (status, &edited["name"]),
        (StatusCode::OK, &json!("G")),
        "a deleted page does not block an update"
    );
}

#[tokio::test]
async fn updating_another_accounts_form_is_a_404() {
    let api = Api::start(&[]).await;
    let (key, other_key) = (api.trial().await, api.trial().await);
    let id = create(&api, &key, "/api/forms", &form()).await;
    assert_eq!(put(&api, &other_key, &id, &json!({"name": "Mine"})).await.0, StatusCode::NOT_FOUND);
    let before = read(&api, &key, &id).await["updatedAt"].clone();
    let (_, edited) = put(&api, &key, &id, &json!({"name": "G"})).await;
    let time = |value: &Value| value.as_str().unwrap().parse::<chrono::DateTime<Utc>>().unwrap();
    assert!(time(&edited["updatedAt"]) > time(&before));
}

#[tokio::test]
async fn an_update_of_an_older_version_is_rejected_as_stale() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let id = create(&api, &key, "/api/forms", &json!({"workflowId": "contact"})).await;
    let version = read(&api, &key, &id).await["updatedAt"].clone();
    let change = json!({"name": "First", "ifUnmodifiedSince": version});
    let (status, first) = put(&api, &key, &id, &change).await;
    assert_eq!(status, StatusCode::OK, "{first}");
    let (status, problem) = put(&api, &key, &id, &change).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("stale_write")), "{problem}");
    assert_eq!(problem["updatedAt"], first["updatedAt"]);
    let (status, second) =
        put(&api, &key, &id, &json!({"name": "Second", "ifUnmodifiedSince": first["updatedAt"]})).await;
    assert_eq!((status, &second["name"]), (StatusCode::OK, &json!("Second")), "{second}");
}
