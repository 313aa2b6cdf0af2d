//! Locks the API document: a change of the API shows as a diff of the checked-in file.

use std::path::Path;

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
    // Handlers write suggestions as `.next("intent", "noun.verb", …)`.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api");
    let mut found = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for part in text.split(".next(").skip(1) {
            let tool = part.split('"').nth(3).unwrap();
            assert!(exists(tool), "a suggestion names `{tool}`, which is not an operation");
            found += 1;
        }
    }
    assert!(found > 3, "only {found} suggestions found");
}
