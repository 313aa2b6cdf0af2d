//! Results for the owner of a form without public results: counts, and statistics of numbers.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::list::{fields, form, insert_submission};
use crate::harness::Api;

const AT: &str = "2027-01-30T10:00:00Z";

#[tokio::test]
async fn an_owner_sees_mean_median_and_histogram_of_the_numbers() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let form = form(&api, &key, fields()).await;
    let results = async || {
        let path = format!("/api/forms/{form}/submissions/results");
        let (status, results) = api.send(Method::GET, &path, Some(&key), &Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{results}");
        results
    };
    let empty = results().await;
    assert_eq!((&empty["formId"], &empty["name"]), (&json!(form), &json!("Contact")));
    assert_eq!(
        empty["fields"][0],
        json!({"name": "age", "label": "Age", "type": "number", "count": 0, "mean": null, "median": null,
               "min": null, "max": null, "histogram": []})
    );

    for age in [2, 3, 3, 8] {
        insert_submission(&api, form, AT, "received", &json!({"age": age, "size": "L", "days": ["Mon"]}))
            .await;
    }
    // One that does not count, and one of a time when the field was a text.
    insert_submission(&api, form, AT, "spam", &json!({"age": 900})).await;
    insert_submission(&api, form, AT, "archived", &json!({"age": "old"})).await;
    let shown = results().await;
    assert_eq!(shown["submissions"], 5);
    let age = &shown["fields"][0];
    assert_eq!(
        (&age["count"], &age["mean"], &age["median"], &age["min"], &age["max"]),
        (&json!(4), &json!(4.0), &json!(3.0), &json!(2.0), &json!(8.0))
    );
    let histogram: Vec<_> =
        age["histogram"].as_array().unwrap().iter().map(|part| (&part["from"], &part["count"])).collect();
    let expected = [(2.0, 1), (3.0, 2), (4.0, 0), (5.0, 0), (6.0, 0), (7.0, 0), (8.0, 1)];
    let expected = expected.map(|(from, count)| (json!(from), json!(count)));
    assert_eq!(histogram, expected.iter().map(|(from, count)| (from, count)).collect::<Vec<_>>());
    assert_eq!(shown["fields"][1]["options"][1], json!({"value": "L", "count": 4}));
    assert_eq!(shown["fields"][1].get("count"), None, "{shown}");

    for age in [0.25, 12.5] {
        insert_submission(&api, form, AT, "received", &json!({"age": age})).await;
    }
    let age = &results().await["fields"][0];
    assert_eq!(age["median"], 3.0);
    let parts = age["histogram"].as_array().unwrap();
    assert_eq!(parts[0], json!({"from": 0.0, "to": 2.0, "count": 1}));
    assert_eq!(parts.iter().map(|part| part["count"].as_i64().unwrap()).sum::<i64>(), 6, "{age}");
}
