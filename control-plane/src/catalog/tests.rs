//! Tests of the catalog over the API's own document.

use std::collections::BTreeMap;

use domain::scopes::ScopeSet;
use http::{HeaderValue, Method};
use serde::Deserialize;
use serde_json::json;

use super::*;

fn catalog() -> Catalog {
    Catalog::new(&crate::api::document())
}

/// An endpoint of the specification.
#[derive(Deserialize)]
struct Specified {
    method: String,
    path: String,
    category: String,
}

fn specified() -> Vec<Specified> {
    serde_json::from_str(include_str!("../../tests/api/endpoints.json")).unwrap()
}

#[test]
fn every_specified_path_has_its_category() {
    for one in specified() {
        assert_eq!(category::category_of(&one.path), one.category, "{} {}", one.method, one.path);
    }
}

#[test]
fn operations_of_the_specification_have_its_categories() {
    let mut expected = BTreeMap::new();
    let catalog = catalog();
    for one in specified() {
        let is_served =
            |operation: &&Operation| operation.method == *one.method && operation.path == one.path;
        if let Some(operation) = catalog.operations().iter().find(is_served) {
            assert_eq!(operation.category, one.category, "{}", operation.id);
            assert!(!operation.is_extension, "{}", operation.id);
            *expected.entry(operation.category).or_insert(0) += 1;
        }
    }
    for category in CATEGORIES {
        let counted = catalog.operations_of(category).filter(|operation| !operation.is_extension).count();
        assert_eq!(counted, expected.get(category).copied().unwrap_or_default(), "{category}");
    }
}

#[test]
fn schemas_are_self_contained_and_valid() {
    for operation in catalog().operations() {
        let schemas = [&operation.request_body, &operation.response, &Some(operation.input_schema.clone())];
        for schema in schemas.into_iter().flatten() {
            let text = schema.to_string();
            assert!(!text.contains("#/components/"), "{}: {text}", operation.id);
            jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{}: {error}", operation.id));
        }
    }
}

#[test]
fn an_operation_is_found_by_its_id() {
    let catalog = catalog();
    let create = catalog.find("forms.create").unwrap();
    assert_eq!(
        (create.method.as_str(), create.path.as_str(), create.success_statuses.as_slice()),
        ("POST", "/api/forms", &[201][..])
    );
    assert_eq!(create.scopes.as_deref(), Some(&["forms:create".to_owned()][..]));
    assert!(catalog.find("trial.create").unwrap().scopes.is_none());
    assert!(catalog.find("forms.bake").is_none());
    let update = catalog.find("pages.update").unwrap();
    assert_eq!(update.input_schema["required"], json!(["id"]));
    assert_eq!(update.input_schema["additionalProperties"], json!(false));
    let members = update.input_schema["properties"].as_object().unwrap();
    assert!(members.contains_key("html") && !members.contains_key("If-Match"));
    assert!(members["ifMatch"]["description"].as_str().unwrap().contains("ETag"), "{members:?}");
    let submit = catalog.find("submissions.submit").unwrap();
    assert!(
        submit.input_schema["properties"].get("idempotencyKey").is_none(),
        "a form may have such a field"
    );
}

const ID: &str = "00000000-0000-4000-8000-000000000000";

fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn arguments_become_a_path_a_query_and_a_body() {
    let catalog = catalog();
    let request = |id: &str, value: Value| catalog.find(id).unwrap().request(&arguments(value)).unwrap();
    let create = request("workflows.create", json!({"id": "a/b ?"}));
    assert_eq!(create.path_and_query.as_str(), "/api/workflows/a%2Fb%20%3F");
    let update = request("pages.update", json!({"id": ID, "title": "T", "ifMatch": "\"17\""}));
    assert_eq!(
        (update.path_and_query, update.body),
        (format!("/api/pages/{ID}"), Some(json!({"title": "T"})))
    );
    assert_eq!(update.headers, [(http::header::IF_MATCH, HeaderValue::from_static("\"17\""))]);
    let create = request("folders.create", json!({"name": "F", "idempotencyKey": "k"}));
    assert_eq!((create.headers.len(), create.body), (1, Some(json!({"name": "F"}))));
    let list = request("pages.list", json!({"collection": "a&b", "limit": 3, "cursor": null}));
    assert_eq!((list.path_and_query.as_str(), list.body), ("/api/pages?collection=a%26b&limit=3", None));
    let upgrade = request("account.upgrade", json!({}));
    assert_eq!((upgrade.method, upgrade.body), (Method::POST, None));
    assert_eq!(request("pages.update", json!({"id": ID, "ifMatch": null})).body, Some(json!({})));
}

#[test]
fn unknown_and_missing_arguments_are_field_errors() {
    let catalog = catalog();
    let refused = |id: &str, value: Value| {
        let errors = catalog.find(id).unwrap().request(&arguments(value)).unwrap_err();
        errors.into_iter().map(|error| format!("{} {}", error.field, error.code)).collect::<Vec<_>>()
    };
    assert_eq!(refused("pages.read", json!({})), ["id required"]);
    assert_eq!(refused("pages.read", json!({"id": ID, "colour": 1})), ["colour unknown"]);
    assert_eq!(refused("pages.read", json!({"id": "x"})), ["id format"]);
    assert_eq!(refused("pages.read", json!({"id": 7})), ["id format"]);
    assert_eq!(refused("pages.update", json!({"id": ID, "ifMatch": "a\nb"})), ["ifMatch type"]);
    assert_eq!(refused("pages.update", json!({"id": ID, "If-Match": "1"})), ["If-Match unknown"]);
    assert_eq!(refused("pages.read", json!({"id": ""})), ["id type"]);
    assert_eq!(refused("pages.read", json!({"id": {}})), ["id type"]);
    assert_eq!(refused("pages.create", json!({"slug": "a", "title": "T"})), ["html required"]);
    assert_eq!(refused("account.read", json!({"id": "x"})), ["id unknown"]);
}

#[test]
fn an_argument_never_selects_another_operation() {
    let catalog = catalog();
    let mut pairs = 0;
    for operation in catalog.operations() {
        let segments: Vec<&str> = operation.path.split('/').collect();
        for other in catalog.operations() {
            let others: Vec<&str> = other.path.split('/').collect();
            let mut chosen = Map::new();
            let is_like = segments.len() == others.len()
                && segments.iter().zip(&others).all(|(own, other)| match own.strip_prefix('{') {
                    Some(name) => {
                        let text = if other.starts_with('{') { ID } else { other };
                        chosen.insert(name.trim_end_matches('}').to_owned(), json!(text));
                        true
                    }
                    None => own == other,
                });
            if !is_like || operation.path == other.path {
                continue;
            }
            pairs += 1;
            let refused = operation.request(&chosen).unwrap_err();
            assert!(
                refused.iter().any(|error| error.code == "format"),
                "{} with the path of {}: {refused:?}",
                operation.id,
                other.id
            );
        }
    }
    assert!(pairs >= 3, "only {pairs} pairs found");
}

#[test]
fn the_scopes_of_every_operation_are_known() {
    for operation in catalog().operations() {
        for scope in operation.scopes.iter().flatten() {
            assert!(ScopeSet::parse([scope.as_str()]).is_ok(), "{}: {scope}", operation.id);
        }
    }
}
