//! Locks the API document: a change of the API shows as a diff of the checked-in file.

use std::path::{Path, PathBuf};

use serde_json::Value;

#[test]
fn the_document_matches_the_checked_in_file() {
    let now = serde_json::to_string_pretty(&control_plane::api::document()).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    if now != stored {
        std::fs::write(&path, &now).unwrap();
        panic!("the API has changed: review and commit the rewritten openapi.json");
    }
}

#[test]
fn every_suggestion_names_an_existing_operation() {
    let document = serde_json::to_value(control_plane::api::document()).unwrap();
    let operations: Vec<&Value> = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|path| path.as_object().unwrap().values())
        .collect();
    let exists = |tool: &str| operations.iter().any(|operation| operation["operationId"] == tool);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = 0;
    // The rules name the tools in one table, as `NOUN_VERB = "noun.verb", …;`.
    let table = std::fs::read_to_string(source.join("next_steps/tools.rs")).unwrap();
    for line in table.lines().filter(|line| line.ends_with(';')) {
        let Some((_, rest)) = line.split_once(" = \"") else { continue };
        let tool = rest.split('"').next().unwrap();
        assert!(exists(tool), "a suggestion names `{tool}`, which is not an operation");
        found += 1;
    }
    assert!(found > 20, "only {found} tools found");
    // Other handlers write a suggestion as `.next("intent", "noun.verb", …)`.
    let folder = source.join("api");
    for file in files(&folder) {
        let text = std::fs::read_to_string(file).unwrap();
        for part in text.split(".next(").skip(1) {
            let tool = part.split('"').nth(3).unwrap();
            assert!(exists(tool), "a suggestion names `{tool}`, which is not an operation");
            found += 1;
        }
    }
    assert!(found > 23, "only {found} suggestions found");
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Schema names become type names in generated clients, so each has a fixed pattern and none depends on its position.
#[test]
fn schema_names_follow_the_pattern() {
    let document = serde_json::to_value(control_plane::api::document()).unwrap();
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(!name.contains('_'), "the schema {name} has an underscore");
        assert!(!name.ends_with(|last: char| last.is_ascii_digit()), "the schema {name} ends in a digit");
    }
    let check = |schema: &Value, suffix: &str, operation: &Value| {
        let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) else { return };
        let id = &operation["operationId"];
        assert!(name.ends_with(suffix), "{name}, used by {id}, does not end in {suffix}");
    };
    let paths = document["paths"].as_object().unwrap().values();
    for operation in paths.flat_map(|path| path.as_object().unwrap().values()) {
        check(&operation["requestBody"]["content"]["application/json"]["schema"], "Request", operation);
        for response in operation["responses"].as_object().unwrap().values() {
            check(&response["content"]["application/json"]["schema"], "Response", operation);
        }
    }
}

/// How many properties have no description. It may only fall.
const UNDESCRIBED_PROPERTIES: usize = 0;

#[test]
fn properties_are_described() {
    let document = serde_json::to_value(control_plane::api::document()).unwrap();
    let undescribed = undescribed(&document["components"]["schemas"], "");
    assert_eq!(undescribed.len(), UNDESCRIBED_PROPERTIES, "{undescribed:#?}");
}

/// The paths of all properties without a description, at any depth.
fn undescribed(value: &Value, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(properties) = value["properties"].as_object() {
        let bare = properties.iter().filter(|(_, property)| !property["description"].is_string());
        found.extend(bare.map(|(name, _)| format!("{path}.{name}")));
    }
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, child)| (name.clone(), child)).collect(),
        Value::Array(items) => items.iter().map(|child| ("[]".to_owned(), child)).collect(),
        _ => Vec::new(),
    };
    found.extend(children.iter().flat_map(|(name, child)| undescribed(child, &format!("{path}.{name}"))));
    found
}
