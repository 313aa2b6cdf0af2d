//! A launch requires the scope of each of its parts, and stays within the key's restrictions.

use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::{Resource, ScopeSet};
use http::StatusCode;
use serde_json::{Value, json};

use super::{folder_key, get, launch, page, refused, with};
use crate::harness::Api;

const PATH: &str = "/api/launch";

#[tokio::test]
async fn each_part_of_a_launch_requires_its_scope() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let bare = json!({"pages": [page("index")], "analytics": false});
    let parts = [
        (vec!["pages:create"], bare.clone(), "pages:update"),
        (vec!["pages:update"], bare.clone(), "pages:create"),
        (vec!["pages:*"], json!({"pages": [page("index")]}), "analytics:create"),
        (
            vec!["pages:*", "analytics:*"],
            with(bare.clone(), json!({"subdomain": "my-site"})),
            "subdomains:update",
        ),
    ];
    for (scopes, body, missing) in parts {
        let narrow = api.key_with(&key, ScopeSet::parse(scopes).unwrap()).await;
        let problem = refused(&api, &narrow, PATH, &body, (403, "insufficient_scope")).await;
        assert_eq!(problem["requiredScope"], missing, "{problem}");
    }
    let enough = api.key_with(&key, ScopeSet::parse(["pages:create", "pages:update"]).unwrap()).await;
    let (status, launched) = launch(&api, &enough, &bare).await;
    assert_eq!(status, StatusCode::CREATED, "{launched}");
}

#[tokio::test]
async fn a_key_of_a_folder_launches_only_pages_of_its_folder() {
    let api = Api::start(&[]).await;
    let (key, account_id) = api.trial_on(Plan::Scale).await;
    launch(&api, &key, &json!({"pages": [page("outside")]})).await;
    let (folder, restricted) = folder_key(&api, &key, account_id).await;

    let body = json!({"pages": [page("inside"), page("other")], "analytics": false});
    let (status, launched) = launch(&api, &restricted, &body).await;
    assert_eq!((status, &launched["created"]), (StatusCode::CREATED, &json!(2)), "{launched}");
    for page in get(&api, &restricted, "/api/pages").await["pages"].as_array().unwrap() {
        assert_eq!(page["folderId"], folder, "a new page is in the folder of the key");
    }
    let changed = with(page("outside"), json!({"html": "changed"}));
    let body = json!({"pages": [page("inside"), page("new"), changed], "analytics": false});
    refused(&api, &restricted, PATH, &body, (403, "folder_forbidden")).await;
    let renamed = json!({"pages": [page("inside")], "analytics": false, "subdomain": "my-site"});
    refused(&api, &restricted, PATH, &renamed, (403, "folder_forbidden")).await;
    let counted = json!({"pages": [page("inside")]});
    let problem = refused(&api, &restricted, PATH, &counted, (403, "folder_forbidden")).await;
    assert!(problem["hint"].as_str().unwrap().contains("`analytics: false`"), "{problem}");
}

#[tokio::test]
async fn a_key_of_listed_resources_launches_only_those() {
    let api = Api::start(&[]).await;
    let (key, account_id) = api.trial_on(Plan::Scale).await;
    let (_, first) =
        launch(&api, &key, &json!({"pages": [page("listed"), page("other")], "analytics": false})).await;
    let id = |value: &Value| value.as_str().unwrap().parse().unwrap();
    let restricted = async |kind, ids: Vec<uuid::Uuid>| {
        let restrictions =
            Restrictions { ids: [(kind, ids.into_iter().collect())].into(), ..Restrictions::default() };
        api.insert_key(account_id, ScopeSet::FULL, restrictions, None).await.1
    };

    let of_pages = restricted(Resource::Pages, vec![id(&first["pages"][0]["id"])]).await;
    let changed = |slug: &str| with(page(slug), json!({"html": "changed"}));
    let (status, launched) =
        launch(&api, &of_pages, &json!({"pages": [changed("listed")], "analytics": false})).await;
    assert_eq!((status, &launched["updated"]), (StatusCode::OK, &json!(1)), "{launched}");
    for pages in [json!([changed("other")]), json!([page("new")])] {
        let body = json!({"pages": pages, "analytics": false});
        refused(&api, &of_pages, PATH, &body, (403, "insufficient_scope")).await;
    }
    // It would count the visits of the other pages, too.
    refused(&api, &of_pages, PATH, &json!({"pages": [changed("listed")]}), (403, "insufficient_scope")).await;

    let of_sites = restricted(Resource::Analytics, vec![]).await;
    refused(&api, &of_sites, PATH, &json!({"pages": [page("listed")]}), (403, "insufficient_scope")).await;
    launch(&api, &key, &json!({"pages": [page("listed")]})).await;
    refused(&api, &of_sites, PATH, &json!({"pages": [page("listed")]}), (403, "insufficient_scope")).await;

    let of_subdomains = restricted(Resource::Subdomains, vec![]).await;
    refused(&api, &of_subdomains, PATH, &json!({"pages": [page("listed")]}), (403, "insufficient_scope"))
        .await;
}
