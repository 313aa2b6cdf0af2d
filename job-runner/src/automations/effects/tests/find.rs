//! `find`.

use automation::execution::{Effect, FindSource};
use chrono::TimeDelta;
use serde_json::{Value, json};
use uuid::Uuid;

use super::fixture::{Fixture, create_entry, new_id, now, object};

fn find(source: FindSource, filter: Value) -> Effect {
    Effect::Find { source, filter: object(filter), since: None, limit: 100 }
}

impl Fixture {
    /// Returns the names of the entries that match, in order.
    async fn names(&self, page_id: Uuid, filter: Value) -> Vec<Value> {
        let found = self.perform(find(FindSource::Entries { page_id }, filter)).await.unwrap();
        let items = found["items"].as_array().unwrap();
        assert_eq!(found["count"], json!(items.len()));
        items.iter().map(|item| item["data"]["name"].clone()).collect()
    }
}

#[tokio::test]
async fn entries_are_found_by_equal_fields_newest_first() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    for data in [
        json!({"name": "a", "n": 1, "tags": ["x", "y"], "ok": true}),
        json!({"name": "b", "n": 1.0, "city": null}),
        json!({"name": "c", "n": "1", "tags": "x", "city": "Bonn"}),
    ] {
        fixture.perform(create_entry(page, data)).await.unwrap();
    }
    for (filter, expected) in [
        (json!({}), json!(["c", "b", "a"])),
        (json!({"n": 1}), json!(["b", "a"])),
        (json!({"n": "1"}), json!(["c"])),
        (json!({"n": 1, "ok": true}), json!(["a"])),
        (json!({"tags": "x"}), json!(["c", "a"])),
        (json!({"tags": ["x", "y"]}), json!(["a"])),
        (json!({"tags": ["x"]}), json!([])),
        (json!({"city": null}), json!(["b", "a"])),
        (json!({"name": "'; drop table pages; --"}), json!([])),
        (json!({"' or 1=1 --": "x"}), json!([])),
    ] {
        assert_eq!(json!(fixture.names(page, filter.clone()).await), expected, "{filter}");
    }
    assert_eq!(fixture.number("select count(*) from automation_steps where type = 'find'").await, 0);
}

#[tokio::test]
async fn only_recent_entries_and_as_many_as_the_limit() {
    let fixture = Fixture::new().await;
    let page = fixture.page(fixture.account, "list").await;
    for name in ["a", "b", "c"] {
        fixture.perform(create_entry(page, json!({"name": name}))).await.unwrap();
    }
    fixture
        .change("update page_entries set created_at = now() - interval '2 days' where data ->> 'name' = 'a'")
        .await;
    let effect = |limit, since| Effect::Find {
        source: FindSource::Entries { page_id: page },
        filter: object(json!({})),
        since,
        limit,
    };
    let found = fixture.perform(effect(100, Some(now() - TimeDelta::days(1)))).await.unwrap();
    assert_eq!((&found["count"], &found["hasMore"]), (&json!(2), &json!(false)));
    let found = fixture.perform(effect(1, None)).await.unwrap();
    assert_eq!((&found["items"][0]["data"]["name"], &found["hasMore"]), (&json!("c"), &json!(true)));
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn submissions_are_found_without_spam() {
    let fixture = Fixture::new().await;
    let form = fixture.form(fixture.account, |_| {}).await;
    for (email, status) in [("a@b.co", "received"), ("b@b.co", "spam"), ("c@b.co", "received")] {
        fixture
            .change(&format!(
                "insert into submissions (id, account_id, form_id, payload, status, created_at, updated_at)
                 values ('{}', '{}', '{form}', '{{\"email\": \"{email}\", \"n\": 1}}', '{status}', now(), now())",
                new_id(),
                fixture.account.id
            ))
            .await;
    }
    let found =
        fixture.perform(find(FindSource::Submissions { form_id: form }, json!({"n": 1}))).await.unwrap();
    let emails: Vec<_> =
        found["items"].as_array().unwrap().iter().map(|item| &item["payload"]["email"]).collect();
    assert_eq!(emails, [&json!("c@b.co"), &json!("a@b.co")]);
    assert_eq!(
        (&found["items"][0]["status"], &found["items"][0]["externalId"]),
        (&json!("received"), &Value::Null)
    );
    let none = fixture
        .perform(find(FindSource::Submissions { form_id: form }, json!({"email": "b@b.co"})))
        .await
        .unwrap();
    assert_eq!(none, json!({"items": [], "count": 0, "hasMore": false}));
}

#[tokio::test]
async fn a_missing_page_is_a_failure() {
    let fixture = Fixture::new().await;
    let failure = fixture.failure(find(FindSource::Entries { page_id: new_id() }, json!({}))).await;
    assert!(failure.message.starts_with("there is no page"), "{failure:?}");
    let page = fixture.page(fixture.account, "list").await;
    let failure = fixture.failure(find(FindSource::Entries { page_id: page }, json!({"a": "\0"}))).await;
    assert!(failure.message.contains("NUL"), "{failure:?}");
}
