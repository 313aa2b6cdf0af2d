//! A list of tools is part of every prompt, so its tokens are counted.

use serde_json::json;
use tiktoken_rs::o200k_base;

use super::client::tools;
use crate::harness::Api;

/// Tokens of the default list.
const LIST_TOKENS_MAX: usize = 4_000;
/// Tokens of one listed output schema.
const OUTPUT_TOKENS_MAX: usize = 100;
/// Tools that have one, of all.
const OUTPUTS_MIN: usize = 60;

#[tokio::test]
async fn the_default_list_has_at_most_4000_tokens() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let listed = tools(&api, &key, "/api/mcp").await;
    let counter = o200k_base().unwrap();
    let tokens = |text: &str| counter.encode_ordinary(text).len();
    let each: Vec<String> = listed
        .iter()
        .map(|tool| format!("{} {}", tokens(&tool.to_string()), tool["name"].as_str().unwrap()))
        .collect();
    let all = tokens(&json!({ "tools": listed }).to_string());
    assert!(all <= LIST_TOKENS_MAX, "{all} tokens: {each:#?}");
    assert!((18..=24).contains(&listed.len()), "{each:?}");
    let mut described = Vec::new();
    for tool in tools(&api, &key, "/api/mcp?toolsets=all").await {
        if let Some(schema) = tool.get("outputSchema") {
            let output = tokens(&schema.to_string());
            assert!(output <= OUTPUT_TOKENS_MAX, "{output} tokens: {tool}");
            described.push(tool["name"].as_str().unwrap().to_owned());
        }
    }
    assert!(
        described.len() >= OUTPUTS_MIN,
        "only {} tools describe their output: {described:?}",
        described.len()
    );
    for name in ["search_api", "account_read", "pages_list", "forms_list", "status_read", "launch_create"] {
        assert!(described.iter().any(|tool| tool == name), "{name}: {described:?}");
    }
}
