//! The callers: the columns of the matrix and their keys.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::restrictions::{LISTABLE, Restrictions};
use domain::scopes::{Action, Resource, Scope, ScopeSet};
use http::Method;
use serde_json::{Value, json};
use service::Clock;

use uuid::Uuid;

use super::resources::{Account, Resources, uploaded};
use crate::harness::Api;

/// A kind of caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// No credential.
    NoKey,
    /// A malformed key.
    Garbage,
    /// An expired key.
    Expired,
    /// A revoked key.
    Revoked,
    /// A key with one scope.
    OneScope(Scope),
    /// A key restricted to a folder, called with a resource inside it.
    FolderInside,
    /// The same key, called with a resource in another folder.
    FolderOutside,
    /// A key restricted to ids of the kind, called with one of them.
    IdsWith,
    /// The same key, called with another id.
    IdsWithout,
    /// A full key of another account.
    OtherAccount,
    /// A session with the origin of this host.
    Session,
    /// A session with the origin of another site.
    SessionForeign,
}

impl Column {
    /// All callers.
    pub(super) fn all() -> Vec<Self> {
        let scopes = Resource::ALL.iter().flat_map(|resource| {
            Action::ALL.iter().map(|action| Self::OneScope(Scope::new(*resource, *action)))
        });
        [Self::NoKey, Self::Garbage, Self::Expired, Self::Revoked]
            .into_iter()
            .chain(scopes)
            .chain([Self::FolderInside, Self::FolderOutside, Self::IdsWith, Self::IdsWithout])
            .chain([Self::OtherAccount, Self::Session, Self::SessionForeign])
            .collect()
    }
}

/// The keys of all columns, for the resources of one account.
pub(super) struct Credentials {
    pub(super) account: Account,
    expired: String,
    revoked: String,
    one_scope: BTreeMap<String, String>,
    folder: String,
    session: String,
    listed: BTreeMap<Resource, [String; 2]>,
    /// Uploaded deploys that those keys created: they may process no others.
    zips: BTreeMap<Resource, [Uuid; 2]>,
}

impl Credentials {
    /// Creates an account and its keys.
    pub(super) async fn create(api: &Api) -> Self {
        let account = Account::create(api).await;
        let key = async |scopes, restrictions| api.insert_key(account.id, scopes, restrictions, None).await.1;
        let expired_at = Clock::system().now() - TimeDelta::seconds(1);
        let (_, expired) =
            api.insert_key(account.id, ScopeSet::FULL, Restrictions::default(), Some(expired_at)).await;
        let (_, short_lived) =
            api.send(Method::POST, "/api/keys", Some(&account.key), &json!({"label": "short-lived"})).await;
        let revoke = format!("/api/keys/{}", short_lived["id"].as_str().unwrap());
        api.send(Method::DELETE, &revoke, Some(&account.key), &Value::Null).await;
        let mut one_scope = BTreeMap::new();
        for column in Column::all() {
            if let Column::OneScope(scope) = column {
                let word = scope.to_string();
                let scopes = ScopeSet::parse([word.as_str()]).unwrap();
                one_scope.insert(word, key(scopes, Restrictions::default()).await);
            }
        }
        let folder = Restrictions { folder_id: Some(account.inside.folder), ids: BTreeMap::new() };
        let mut listed = BTreeMap::new();
        for kind in LISTABLE {
            let only = |resources: &Resources| Restrictions {
                folder_id: None,
                ids: [(kind, [resources.of(kind)].into())].into(),
            };
            let with = key(ScopeSet::FULL, only(&account.inside)).await;
            listed.insert(kind, [with, key(ScopeSet::FULL, only(&account.outside)).await]);
        }
        let mut zips = BTreeMap::new();
        for kind in [Resource::Subdomains, Resource::Pages] {
            let [with, without] = &listed[&kind];
            zips.insert(
                kind,
                [uploaded(api, with, account.id).await, uploaded(api, without, account.id).await],
            );
        }
        Self {
            folder: key(ScopeSet::FULL, folder).await,
            session: api.sign_in(account.id).await,
            expired,
            revoked: short_lived["key"].as_str().unwrap().to_owned(),
            one_scope,
            listed,
            zips,
            account,
        }
    }

    /// The headers of a column's caller, for a case about this resource kind.
    pub(super) fn headers(
        &self,
        other: &Account,
        column: Column,
        kind: Resource,
    ) -> Vec<(&'static str, String)> {
        let key = match column {
            Column::NoKey => return vec![],
            Column::Session => return self.signed_in("http://localhost:8080"),
            Column::SessionForeign => return self.signed_in("http://shop.localhost:8080"),
            Column::Garbage => "garbage",
            Column::Expired => &self.expired,
            Column::Revoked => &self.revoked,
            Column::OneScope(scope) => &self.one_scope[&scope.to_string()],
            Column::FolderInside | Column::FolderOutside => &self.folder,
            Column::IdsWith => &self.listed[&kind][0],
            Column::IdsWithout => &self.listed[&kind][1],
            Column::OtherAccount => &other.key,
        };
        vec![("authorization", format!("Bearer {key}"))]
    }

    /// The resources of an account as this caller has them.
    pub(super) fn own(&self, resources: Resources, column: Column, kind: Resource) -> Resources {
        let at = match column {
            Column::IdsWith => 0,
            Column::IdsWithout => 1,
            _ => return resources,
        };
        Resources { zip: self.zips.get(&kind).map_or(resources.zip, |zips| zips[at]), ..resources }
    }

    fn signed_in(&self, origin: &str) -> Vec<(&'static str, String)> {
        vec![("cookie", self.session.clone()), ("origin", origin.to_owned())]
    }
}
