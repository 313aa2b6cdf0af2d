//! Changes in words.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

/// A change, as the page shows it.
#[derive(Debug, Serialize)]
pub(super) struct ActivityRow {
    at: Value,
    /// What the operation does, as the API document says; the operation itself if it is not in there.
    words: String,
    operation: String,
    actor_kind: &'static str,
    actor_name: Value,
    resource_kind: Option<String>,
    resource_id: Value,
    pub(super) resource_name: Option<String>,
    request_id: Value,
}

/// Returns the changes of a list. `document` is the API document.
pub(super) fn rows(list: &Value, document: &Value) -> Vec<ActivityRow> {
    let summaries = summaries(document);
    let changes = list["activity"].as_array().into_iter().flatten();
    changes.map(|change| row(change, &summaries)).collect()
}

fn row(change: &Value, summaries: &HashMap<&str, &str>) -> ActivityRow {
    let operation = change["operation"].as_str().unwrap_or_default();
    let resource = &change["resource"];
    let text = |name: &str| resource[name].as_str().map(str::to_owned);
    ActivityRow {
        at: change["at"].clone(),
        words: summaries.get(operation).copied().unwrap_or(operation).to_owned(),
        operation: operation.to_owned(),
        actor_kind: match change["actor"]["type"].as_str() {
            Some("person") => "Person",
            Some("key") => "Key",
            Some("automation") => "Automation",
            _ => "Operator",
        },
        actor_name: change["actor"]["name"].clone(),
        resource_kind: text("type").map(|kind| singular(&kind)),
        resource_id: resource["id"].clone(),
        resource_name: text("name"),
        request_id: change["requestId"].clone(),
    }
}

/// Returns the noun of one resource of a type.
fn singular(kind: &str) -> String {
    match kind {
        "analytics" => "analytics site".to_owned(),
        "entries" => "entry".to_owned(),
        other => other.trim_end_matches('s').to_owned(),
    }
}

/// Returns the summaries of the document's operations, by id.
fn summaries(document: &Value) -> HashMap<&str, &str> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.filter_map(|(_, methods)| methods.as_object()).flatten();
    operations
        .filter_map(|(_, operation)| {
            Some((operation["operationId"].as_str()?, first_clause(operation["summary"].as_str()?)))
        })
        .collect()
}

/// Returns a summary up to its first comma or semicolon: what follows is about the call, not about the change.
fn first_clause(summary: &str) -> &str {
    summary.split([',', ';']).next().unwrap_or(summary)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_reads_as_the_document_says() {
        let document = json!({ "paths": { "/api/forms/{id}": {
            "put": { "operationId": "forms.update", "summary": "Update a form; absent members stay" } } } });
        let change = |operation: &str| {
            json!({ "activity": [{ "at": "2026-11-22T10:00:00Z", "operation": operation, "requestId": null,
                "actor": { "type": "key", "id": "k", "name": "deploys" },
                "resource": { "type": "forms", "id": "f", "name": "Contact" } }] })
        };
        let row = &rows(&change("forms.update"), &document)[0];
        assert_eq!((row.words.as_str(), row.actor_kind), ("Update a form", "Key"));
        assert_eq!(row.resource_kind.as_deref(), Some("form"));
        assert_eq!(rows(&change("admin plan"), &document)[0].words, "admin plan");
    }
}
