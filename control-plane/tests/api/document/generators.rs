//! Rules of the document for generators of clients, at any depth.

use serde_json::Value;

/// Calls `check` with each object of the document and its path.
fn visit(value: &Value, path: &str, check: &mut impl FnMut(&Value, &str)) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, child)| (name.clone(), child)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, child)| (at.to_string(), child)).collect(),
        _ => return,
    };
    check(value, path);
    for (name, child) in children {
        visit(child, &format!("{path}/{name}"), check);
    }
}

/// The paths of all objects that are wrong.
fn wrong(is_wrong: impl Fn(&Value, &str) -> bool) -> Vec<String> {
    let document = serde_json::to_value(control_plane::api::document()).unwrap();
    let mut found = Vec::new();
    visit(&document, "", &mut |value, path| {
        if is_wrong(value, path) {
            found.push(path.to_owned());
        }
    });
    found
}

#[test]
fn enumerations_are_plain() {
    let is_constant = |choice: &Value| choice.get("const").is_some();
    let wrong = wrong(|value, _| {
        ["oneOf", "anyOf"]
            .iter()
            .any(|name| value[*name].as_array().is_some_and(|choices| choices.iter().any(is_constant)))
    });
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn no_schema_has_a_default() {
    let wrong = wrong(|value, path| {
        !path.ends_with("/responses") && !path.ends_with("/properties") && value.get("default").is_some()
    });
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn no_schema_of_a_property_is_true() {
    let is_true = |schema: &Value| schema.is_boolean();
    let wrong = wrong(|value, _| {
        value["properties"].as_object().is_some_and(|properties| properties.values().any(is_true))
            || value.get("items").is_some_and(is_true)
    });
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn problems_have_meta_and_the_document_a_server() {
    let document = serde_json::to_value(control_plane::api::document()).unwrap();
    let meta = &document["components"]["schemas"]["Problem"]["properties"]["_meta"];
    assert!(meta.to_string().contains("#/components/schemas/Meta"), "{meta}");
    assert_eq!(document["servers"][0]["url"], "/");
}
