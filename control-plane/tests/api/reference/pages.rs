//! `/docs` and `/llms.txt`.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use serde_json::Value;

use super::read;
use crate::harness::Api;

/// Bound of a page over the network.
const PAGE_BYTES_MAX: usize = 100 << 10;

#[tokio::test]
async fn each_category_has_a_light_page_with_all_its_operations() {
    let api = Api::start(&[]).await;
    let (_, schema) = api.send(Method::GET, "/api/schema", None, &Value::Null).await;
    let (index, _) = read(&api, "/docs", "identity").await;
    let index = String::from_utf8(index).unwrap();
    for category in schema["categories"].as_array().unwrap() {
        let name = category["name"].as_str().unwrap();
        assert!(index.contains(&format!("href=\"/docs/{name}\"")), "{name}");
        let path = format!("/docs/{name}");
        let (compressed, headers) = read(&api, &path, "gzip").await;
        assert!(compressed.len() < PAGE_BYTES_MAX, "{path} has {} bytes", compressed.len());
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        assert_eq!(headers["content-type"], "text/html; charset=utf-8");
        let (page, _) = read(&api, &path, "identity").await;
        let page = String::from_utf8(page).unwrap();
        assert!(!page.contains("<script") && !page.contains("style=\""), "{path}");
        for list in ["endpoints", "extensions"] {
            let all = schema[list].as_array().unwrap().iter();
            for endpoint in all.filter(|endpoint| endpoint["category"] == name) {
                let id = endpoint["operation"].as_str().unwrap();
                assert!(page.contains(&format!("<section id=\"{id}\">")), "{path}: {id}");
            }
        }
    }
    let (status, problem) = api.send(Method::GET, "/docs/cats", None, &Value::Null).await;
    assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &"not_found".into()));
}

#[tokio::test]
async fn the_guide_names_only_paths_that_exist() {
    let api = Api::start(&[]).await;
    let (guide, headers) = read(&api, "/llms.txt", "identity").await;
    let guide = String::from_utf8(guide).unwrap();
    assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
    assert!(guide.starts_with("# Web Runtime\n\n> ") && guide.len() < 6_000, "{} bytes", guide.len());
    let (_, document) = api.send(Method::GET, "/api/openapi.json", None, &Value::Null).await;
    let known: BTreeSet<String> =
        document["paths"].as_object().unwrap().keys().map(|path| shape(path)).collect();
    let mut found = 0;
    for (at, _) in guide.match_indices("/api/") {
        let path: String = guide[at..]
            .chars()
            .take_while(|char| char.is_alphanumeric() || "/-_.{}$".contains(*char))
            .collect();
        let path = path.trim_end_matches(['.', '/']);
        assert!(known.contains(&shape(path)) || path == "/api/openapi.json", "{path}");
        found += 1;
    }
    assert!(found > 12, "only {found} paths found");
    for path in ["/api/trial", "/api/launch", "/api/mcp", "/docs", "/api/schema", "/api/openapi.json"] {
        assert!(guide.contains(&format!("http://localhost:8080{path}")), "{path}");
    }
}

/// A path with the same sign for each parameter.
fn shape(path: &str) -> String {
    let segments = path.split('/').map(|one| if one.starts_with(['{', '$']) { "*" } else { one });
    segments.collect::<Vec<_>>().join("/")
}
