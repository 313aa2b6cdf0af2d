//! Who calls: the columns of the matrix, and the key each of them holds.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::reach::{LISTABLE, Reach};
use domain::scopes::{Action, Resource, Scope, ScopeSet};
use http::Method;
use serde_json::{Value, json};
use service::Clock;

use super::things::{Account, Things};
use crate::harness::Api;

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Nobody.
    NoKey,
    /// What is no key at all.
    Garbage,
    /// A key that has expired.
    Expired,
    /// A key that was revoked.
    Revoked,
    /// A key with one scope.
    OneScope(Scope),
    /// A key kept to a folder; what is named lies in it.
    FolderInside,
    /// The same key; what is named lies in another folder.
    FolderOutside,
    /// A key kept to listed things of the kind in question; what is named is listed.
    IdsWith,
    /// The same; what is named is not listed.
    IdsWithout,
    /// A key of another account, which may do everything there.
    OtherAccount,
    /// Somebody signed in, from a page of ours.
    Session,
    /// Somebody signed in, whose browser was sent here by another site.
    SessionForeign,
}

impl Column {
    /// Every one.
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

/// The keys of all columns, for the things of one account.
pub(super) struct Callers {
    pub(super) account: Account,
    expired: String,
    revoked: String,
    one_scope: BTreeMap<String, String>,
    folder: String,
    session: String,
    listed: BTreeMap<Resource, [String; 2]>,
}

impl Callers {
    /// Makes an account and its keys.
    pub(super) async fn make(api: &Api) -> Self {
        let account = Account::make(api).await;
        let key = async |scopes, reach| api.insert_key(account.id, scopes, reach, None).await.1;
        let past = Clock::system().now() - TimeDelta::seconds(1);
        let (_, expired) = api.insert_key(account.id, ScopeSet::FULL, Reach::default(), Some(past)).await;
        let (_, short_lived) =
            api.send(Method::POST, "/api/keys", Some(&account.key), &json!({"label": "short-lived"})).await;
        let revoke = format!("/api/keys/{}", short_lived["id"].as_str().unwrap());
        api.send(Method::DELETE, &revoke, Some(&account.key), &Value::Null).await;
        let mut one_scope = BTreeMap::new();
        for column in Column::all() {
            if let Column::OneScope(scope) = column {
                let word = scope.to_string();
                let scopes = ScopeSet::parse([word.as_str()]).unwrap();
                one_scope.insert(word, key(scopes, Reach::default()).await);
            }
        }
        let folder = Reach { folder_id: Some(account.inside.folder), ids: BTreeMap::new() };
        let mut listed = BTreeMap::new();
        for kind in LISTABLE.into_iter().filter(|kind| *kind != Resource::Automations) {
            let only =
                |things: &Things| Reach { folder_id: None, ids: [(kind, [things.of(kind)].into())].into() };
            let with = key(ScopeSet::FULL, only(&account.inside)).await;
            listed.insert(kind, [with, key(ScopeSet::FULL, only(&account.outside)).await]);
        }
        Self {
            folder: key(ScopeSet::FULL, folder).await,
            session: api.sign_in(account.id).await,
            expired,
            revoked: short_lived["key"].as_str().unwrap().to_owned(),
            one_scope,
            listed,
            account,
        }
    }

    /// What a column's caller shows, for a case that is about things of this kind.
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

    fn signed_in(&self, origin: &str) -> Vec<(&'static str, String)> {
        vec![("cookie", self.session.clone()), ("origin", origin.to_owned())]
    }
}
