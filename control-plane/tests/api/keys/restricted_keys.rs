//! Restricted keys: they create, list, rotate and revoke only keys that are not wider in any dimension, and
//! their counts cover only their own resources.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::{Resource, ScopeSet};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use service::Clock;
use uuid::Uuid;

use crate::harness::Api;
use crate::no_side_effects::Snapshot;

/// The permissions of a key in every dimension.
#[derive(Clone)]
struct Permissions {
    scopes: ScopeSet,
    restrictions: Restrictions,
    expires_at: Option<DateTime<Utc>>,
}

struct Fixture {
    api: Api,
    key: String,
    account_id: Uuid,
    folders: [Uuid; 2],
    pages: [Uuid; 2],
}

impl Fixture {
    /// Creates an account with two folders and a page in each.
    async fn setup() -> Self {
        let api = Api::start(&[]).await;
        let (key, account_id) = api.trial_on(Plan::Scale).await;
        let mut fixture = Self { api, key, account_id, folders: [Uuid::nil(); 2], pages: [Uuid::nil(); 2] };
        for (at, name) in ["first", "second"].into_iter().enumerate() {
            fixture.folders[at] = fixture.create("/api/folders", json!({"name": name})).await;
            let page = json!({"slug": name, "title": name, "html": "x", "folderId": fixture.folders[at]});
            fixture.pages[at] = fixture.create("/api/pages", page).await;
        }
        fixture
    }

    async fn create(&self, path: &str, body: Value) -> Uuid {
        let (status, response) = self.api.send(Method::POST, path, Some(&self.key), &body).await;
        assert_eq!(status, StatusCode::CREATED, "{response}");
        response["id"].as_str().unwrap().parse().unwrap()
    }

    async fn create_key(&self, permissions: &Permissions) -> (Uuid, String) {
        self.api
            .insert_child(
                self.account_id,
                permissions.scopes,
                permissions.restrictions.clone(),
                permissions.expires_at,
            )
            .await
    }

    /// A key restricted in every dimension, and keys that are each wider in exactly one.
    fn restricted_and_wider(&self) -> (Permissions, Vec<(&'static str, Permissions)>) {
        let words = ["keys:*", "pages:read"];
        let in_a_day = Clock::system().now() + TimeDelta::days(1);
        let ids =
            |kind, ids: &[Uuid]| -> BTreeMap<Resource, _> { [(kind, ids.iter().copied().collect())].into() };
        let restricted = Permissions {
            scopes: ScopeSet::parse(words).unwrap(),
            restrictions: Restrictions {
                folder_id: Some(self.folders[0]),
                ids: ids(Resource::Pages, &self.pages[..1]),
            },
            expires_at: Some(in_a_day),
        };
        let with_restrictions = |restrictions| Permissions { restrictions, ..restricted.clone() };
        let own = restricted.restrictions.clone();
        let wider = vec![
            (
                "scopes",
                Permissions { scopes: ScopeSet::parse(["keys:*", "pages:*"]).unwrap(), ..restricted.clone() },
            ),
            (
                "another folder",
                with_restrictions(Restrictions { folder_id: Some(self.folders[1]), ..own.clone() }),
            ),
            ("no folder", with_restrictions(Restrictions { folder_id: None, ..own.clone() })),
            (
                "more pages",
                with_restrictions(Restrictions { ids: ids(Resource::Pages, &self.pages), ..own.clone() }),
            ),
            ("all pages", with_restrictions(Restrictions { ids: BTreeMap::new(), ..own })),
            (
                "a later end",
                Permissions { expires_at: Some(in_a_day + TimeDelta::seconds(1)), ..restricted.clone() },
            ),
            ("no end", Permissions { expires_at: None, ..restricted.clone() }),
        ];
        (restricted, wider)
    }
}

#[tokio::test]
async fn a_restricted_key_can_not_list_rotate_or_revoke_a_wider_key() {
    let fixture = Fixture::setup().await;
    let (restricted, wider) = fixture.restricted_and_wider();
    let (own_id, key) = fixture.create_key(&restricted).await;
    let (equal, _) = fixture.create_key(&restricted).await;
    let mut others = Vec::new();
    for (dimension, permissions) in &wider {
        others.push((dimension, fixture.create_key(permissions).await.0));
    }
    let (_, listed) = fixture.api.send(Method::GET, "/api/keys", Some(&key), &Value::Null).await;
    let seen: Vec<&str> =
        listed["keys"].as_array().unwrap().iter().map(|key| key["id"].as_str().unwrap()).collect();
    assert_eq!(seen, [own_id.to_string(), equal.to_string()], "the wider keys are not listed");

    let before = Snapshot::take(&fixture.api).await;
    for (dimension, id) in others {
        for (method, path) in
            [(Method::POST, format!("/api/keys/{id}/rotate")), (Method::DELETE, format!("/api/keys/{id}"))]
        {
            let (status, problem) = fixture.api.send(method, &path, Some(&key), &Value::Null).await;
            assert_eq!(
                (status, &problem["code"]),
                (StatusCode::FORBIDDEN, &json!("insufficient_scope")),
                "{dimension}: {problem}"
            );
        }
    }
    assert_eq!(before.check().await, Ok(()));
    let rotate = format!("/api/keys/{equal}/rotate");
    let (status, _) = fixture.api.send(Method::POST, &rotate, Some(&key), &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "an equal key may be rotated");
}

#[tokio::test]
async fn a_restricted_key_creates_no_wider_key() {
    let fixture = Fixture::setup().await;
    let (restricted, _) = fixture.restricted_and_wider();
    let (_, key) = fixture.create_key(&restricted).await;
    let [_, other_folder] = fixture.folders;
    let [own_page, other_page] = fixture.pages;
    let end = restricted.expires_at.unwrap();
    let before = Snapshot::take(&fixture.api).await;
    for wider in [
        json!({"scopes": ["*"]}),
        json!({"scopes": ["pages:update"]}),
        json!({"scopes": ["keys:*", "pages:read", "forms:read"]}),
        json!({"folderId": other_folder}),
        json!({"resourceIds": {"pages": [other_page]}}),
        json!({"resourceIds": {"pages": [own_page, other_page]}}),
        json!({"expiresAt": end + TimeDelta::seconds(1)}),
    ] {
        let mut body = wider.clone();
        body["label"] = json!("child");
        let (status, problem) = fixture.api.send(Method::POST, "/api/keys", Some(&key), &body).await;
        let answered = (status, problem["code"].as_str().unwrap());
        assert_eq!(answered, (StatusCode::FORBIDDEN, "insufficient_scope"), "{wider}: {problem}");
    }
    assert_eq!(before.check().await, Ok(()));

    let (status, child) =
        fixture.api.send(Method::POST, "/api/keys", Some(&key), &json!({"label": "child"})).await;
    assert_eq!(status, StatusCode::CREATED, "{child}");
    let shown = |value: &Value| value.as_str().unwrap().parse::<DateTime<Utc>>().unwrap().timestamp_micros();
    assert_eq!(
        (&child["scopes"], &child["folderId"], &child["resourceIds"], shown(&child["expiresAt"])),
        (
            &json!(["pages:read", "keys:*"]),
            &json!(fixture.folders[0]),
            &json!({"pages": [own_page]}),
            end.timestamp_micros()
        ),
        "a child inherits omitted restrictions"
    );
}

#[tokio::test]
async fn a_slug_conflict_names_the_page_only_to_keys_that_can_access_it() {
    let fixture = Fixture::setup().await;
    let restrictions = Restrictions { folder_id: Some(fixture.folders[0]), ..Restrictions::default() };
    let (_, key) =
        fixture.create_key(&Permissions { scopes: ScopeSet::FULL, restrictions, expires_at: None }).await;
    for (slug, received) in [("first", json!(fixture.pages[0])), ("second", Value::Null)] {
        let page = json!({"slug": slug, "title": "T", "html": "x"});
        let (status, problem) = fixture.api.send(Method::POST, "/api/pages", Some(&key), &page).await;
        assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("slug_taken")), "{problem}");
        assert_eq!(problem["existingPageId"], received);
        assert!(problem["hint"].is_string(), "{problem}");
    }
}

#[tokio::test]
async fn counts_show_a_restricted_key_only_its_resources() {
    let fixture = Fixture::setup().await;
    let api = &fixture.api;
    let [folder, _] = fixture.folders;
    let [page, _] = fixture.pages;
    for slug in ["third", "fourth"] {
        let page = json!({"slug": slug, "title": "T", "html": "x", "folderId": folder});
        fixture.create("/api/pages", page).await;
    }
    fixture.create("/api/pages", json!({"slug": "loose", "title": "T", "html": "x"})).await;
    let count = async |key: &str| {
        let (_, subdomains) = api.send(Method::GET, "/api/account/subdomains", Some(key), &Value::Null).await;
        let (_, folders) = api.send(Method::GET, "/api/folders", Some(key), &Value::Null).await;
        let path = format!("/api/folders/{folder}?include=resources");
        let (_, whole) = api.send(Method::GET, &path, Some(key), &Value::Null).await;
        assert_eq!(whole["counts"], folders["folders"][0]["counts"], "list and read return the same counts");
        (
            subdomains["subdomains"][0]["pageCount"].as_i64().unwrap(),
            folders["folders"].as_array().unwrap().len(),
            whole["counts"]["pages"].as_i64().unwrap(),
            whole["resources"].as_array().unwrap().len(),
        )
    };
    let narrowed =
        async |restrictions| api.insert_key(fixture.account_id, ScopeSet::FULL, restrictions, None).await.1;
    let in_folder = Restrictions { folder_id: Some(folder), ids: BTreeMap::new() };
    let one_page = Restrictions { folder_id: None, ids: [(Resource::Pages, [page].into())].into() };
    let no_form = Restrictions { folder_id: None, ids: [(Resource::Forms, [].into())].into() };
    assert_eq!(count(&fixture.key).await, (5, 2, 3, 3));
    assert_eq!(count(&narrowed(in_folder).await).await, (3, 1, 3, 3));
    assert_eq!(count(&narrowed(one_page).await).await, (1, 2, 1, 1));
    assert_eq!(
        count(&narrowed(no_form).await).await,
        (5, 2, 3, 3),
        "a restriction to forms does not restrict pages"
    );
}
