//! Arguments that stand in the path or in a header of the call.

use serde_json::json;

use super::client::{call, called, tools};
use crate::harness::Api;

#[tokio::test]
async fn an_id_that_is_none_does_not_reach_another_operation() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let form = json!({"name": "F", "fields": [{"name": "email", "label": "E-mail", "type": "email"}]});
    let form = called(&api, &key, "forms_create", form).await["formId"].clone();
    for (tool, arguments, field) in [
        ("pages_read", json!({"id": "archives"}), "id"),
        ("pages_read", json!({"id": "assets"}), "id"),
        ("pages_delete", json!({"id": "batch"}), "id"),
        ("submissions_read", json!({"id": form, "subId": "results"}), "subId"),
        ("pages_read", json!({"id": "../account"}), "id"),
    ] {
        let result = call(&api, &key, tool, arguments.clone()).await;
        let problem = &result["structuredContent"];
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        assert_eq!(problem["fieldErrors"][0]["field"], field, "{tool} {arguments}: {problem}");
        assert_eq!(problem["fieldErrors"][0]["code"], "format", "{tool} {arguments}: {problem}");
    }
}

#[tokio::test]
async fn an_update_can_require_the_version_that_was_read() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let described = called(&api, &key, "describe_api", json!({"operation": "pages.update"})).await;
    let documented = &described["inputSchema"]["properties"]["ifMatch"];
    assert!(documented["description"].as_str().is_some_and(|text| text.contains("ETag")), "{described}");
    let listed = tools(&api, &key, "/api/mcp").await;
    let update = listed.iter().find(|tool| tool["name"] == "pages_update").unwrap();
    assert_eq!(update["inputSchema"]["properties"]["ifMatch"]["type"], "string");

    let page = json!({"slug": "first", "title": "T", "html": "x"});
    let page = called(&api, &key, "pages_create", page).await;
    let id = page["id"].clone();
    let stale = json!({"id": id, "title": "U", "ifMatch": "\"17\""});
    let refused = call(&api, &key, "pages_update", stale).await;
    assert_eq!((&refused["isError"], &refused["structuredContent"]["status"]), (&json!(true), &json!(409)));
    let any = json!({"id": id, "title": "U", "ifMatch": "*"});
    assert_eq!(called(&api, &key, "pages_update", any).await["title"], "U");
    let text = json!({"id": id, "title": "V", "ifMatch": "a\nb"});
    let refused = call(&api, &key, "pages_update", text).await;
    assert_eq!(refused["structuredContent"]["fieldErrors"][0]["field"], "ifMatch", "{refused}");
    let read = called(&api, &key, "pages_read", json!({"id": id})).await;
    assert_eq!(read["title"], "U");
}
