//! Which tools a caller sees.

use domain::scopes::ScopeSet;
use http::StatusCode;
use serde_json::{Value, json};

use super::client::{legacy, modern, names, post, tools};
use crate::harness::Api;

#[tokio::test]
async fn a_key_sees_the_tools_that_its_scopes_allow() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let all = tools(&api, &key, "/api/mcp").await;
    for name in ["search_api", "describe_api", "call_api_read", "call_api_write", "call_api_delete"] {
        assert!(names(&all).contains(&name), "{name}");
    }
    for name in
        ["account_read", "launch_create", "status_read", "pipeline_create", "forms_create", "webhooks_create"]
    {
        assert!(names(&all).contains(&name), "{name}: {:?}", names(&all));
    }
    let reader = api.key_with(&key, ScopeSet::parse(["forms:read"]).unwrap()).await;
    let shown = tools(&api, &reader, "/api/mcp").await;
    assert_eq!(names(&shown), ["search_api", "describe_api", "call_api_read", "forms_list"]);
    let none = api.key_with(&key, ScopeSet::default()).await;
    let shown = tools(&api, &none, "/api/mcp?toolsets=all").await;
    let public = ["search_api", "describe_api", "trial_create", "workflows_list", "workflows_read"];
    let unexpected: Vec<_> = names(&shown).into_iter().filter(|name| !public.contains(name)).collect();
    assert!(unexpected.iter().all(|name| name.starts_with("system_")), "{unexpected:?}");
}

#[tokio::test]
async fn a_toolset_lists_every_operation_of_a_category() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let webhooks = tools(&api, &key, "/api/mcp?toolsets=webhooks").await;
    for name in ["webhooks_create", "webhooks_rotate_secret", "deliveries_retry", "search_api"] {
        assert!(names(&webhooks).contains(&name), "{name}: {:?}", names(&webhooks));
    }
    assert!(!names(&webhooks).contains(&"pages_create"));
    let two = tools(&api, &key, "/api/mcp?toolsets=webhooks,%20default").await;
    assert!(names(&two).contains(&"pages_create") && names(&two).contains(&"webhooks_rotate_secret"));
    let all = tools(&api, &key, "/api/mcp?toolsets=all").await;
    let served = control_plane::api::document();
    let served = web::endpoints_of(&served);
    assert!(all.len() > 80 && all.len() <= served.len() + 5, "{}", all.len());
    assert!(!names(&all).contains(&"mcp_call"), "the endpoint does not call itself");
    let unknown = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let (status, _, answer) = post(&api, Some(&key), "/api/mcp?toolsets=nothing", &[], unknown).await;
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::OK, &json!(-32602)), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("webhooks"), "names those that exist");
}

#[tokio::test]
async fn every_tool_has_a_name_for_models_hints_and_a_valid_schema() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let listed = tools(&api, &key, "/api/mcp?toolsets=all").await;
    for tool in &listed {
        let name = tool["name"].as_str().unwrap();
        let is_plain = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_' || char == '-');
        assert!(is_plain && (1..=64).contains(&name.len()), "{name}");
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 5), "{tool}");
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{tool}");
        }
        for schema in [Some(&tool["inputSchema"]), tool.get("outputSchema")].into_iter().flatten() {
            assert_eq!(schema["type"], "object", "{tool}");
            assert!(jsonschema::meta::is_valid(schema), "{tool}");
            assert!(!schema.to_string().contains("$ref"), "{tool}");
        }
    }
    let hints = |name: &str| {
        let tool = listed.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}"));
        let hint = |hint: &str| tool["annotations"][hint].as_bool().unwrap();
        [hint("readOnlyHint"), hint("destructiveHint"), hint("idempotentHint")]
    };
    assert_eq!(hints("forms_list"), [true, false, true]);
    assert_eq!(hints("analytics_funnel"), [true, false, true], "a query with a body");
    assert_eq!(hints("forms_create"), [false, false, false]);
    assert_eq!(hints("webhooks_test"), [false, false, false]);
    assert_eq!(hints("pages_update"), [false, true, true]);
    assert_eq!(hints("launch_create"), [false, true, true], "it overwrites pages");
    assert_eq!(hints("pages_batch"), [false, true, false], "it overwrites pages");
    assert_eq!(hints("forms_delete"), [false, true, true]);
    assert_eq!(hints("call_api_read"), [true, false, true]);
    assert_eq!(hints("call_api_write"), [false, true, false]);
    assert_eq!(hints("call_api_delete"), [false, true, false]);
    for overwrites in [
        "keys_rotate",
        "webhooks_rotate_secret",
        "versions_rollback",
        "deploys_rollback",
        "deploys_process",
        "automations_cancel",
        "account_upgrade",
        "submissions_upsert",
    ] {
        assert_eq!(hints(overwrites)[..2], [false, true], "{overwrites}");
    }
    let mut unique = names(&listed);
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), listed.len());
}

#[tokio::test]
async fn the_list_is_the_same_in_both_eras_and_private_to_its_key() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let old = legacy(&api, &key, "tools/list", json!({})).await;
    let (status, new) = modern(&api, &key, "tools/list", json!({})).await;
    assert_eq!(status, StatusCode::OK, "{new}");
    assert_eq!(old["result"]["tools"], new["result"]["tools"]);
    let members =
        |answer: &Value| ["resultType", "ttlMs", "cacheScope"].map(|name| answer["result"][name].clone());
    assert_eq!(members(&old), [Value::Null, Value::Null, Value::Null]);
    assert_eq!(members(&new), [json!("complete"), json!(60_000), json!("private")]);
}
