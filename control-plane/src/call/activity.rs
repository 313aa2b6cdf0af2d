//! The log of changes: [`Call::commit`] adds a row to the transaction of every change that a call makes.
//!
//! A handler says nothing of it: the operation comes from the route, the author from the credential, and what was changed from
//! the check of the caller's restrictions. Only a creation names its resource, whose id did not exist when it was checked.

use std::sync::{Mutex, PoisonError};

use axum::extract::MatchedPath;
use contract::{Change, Signal};
use domain::scopes::Resource;
use http::request::Parts;
use store::Tx;
use store::activity::{Actor, ChangedResource, NewActivity, insert_activity};
use store::credentials::Credential;
use uuid::Uuid;
use web::Problem;

use crate::App;
use crate::call::Call;
use crate::catalog;

/// What the log says of a call, beside its caller.
#[derive(Debug)]
pub(crate) struct ActivityContext {
    /// `None` for a read.
    operation: Option<&'static str>,
    resource: Mutex<Option<Changed>>,
}

/// A resource that a call changes.
#[derive(Debug, Clone)]
struct Changed {
    kind: Resource,
    id: Uuid,
    name: String,
}

impl ActivityContext {
    /// Reads the operation of a request.
    pub(crate) fn new(parts: &Parts) -> Self {
        let route = parts.extensions.get::<MatchedPath>().filter(|_| !parts.method.is_safe());
        let operation = route.and_then(|route| catalog::find_operation_id(&parts.method, route.as_str()));
        Self { operation, resource: Mutex::new(None) }
    }

    /// Takes the first resource that is checked for the one that is changed: ids in bodies are checked later. A folder is only
    /// the place of a change, unless the operation is about folders.
    pub(crate) fn record_checked(&self, kind: Resource, id: Uuid, name: &str) {
        let is_about = |noun| self.operation.is_some_and(|operation| operation.starts_with(noun));
        if self.operation.is_none() || (kind == Resource::Folders && !is_about("folders.")) {
            return;
        }
        let mut resource = self.resource.lock().unwrap_or_else(PoisonError::into_inner);
        resource.get_or_insert_with(|| Changed { kind, id, name: name.to_owned() });
    }

    fn resource(&self) -> Option<Changed> {
        self.resource.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<S> Call<S> {
    /// Names the resource that the call creates, or the one of several that the next commit changes.
    pub(crate) fn set_changed(&self, kind: Resource, id: Uuid, name: &str) {
        let changed = Changed { kind, id, name: name.to_owned() };
        *self.activity.resource.lock().unwrap_or_else(PoisonError::into_inner) = Some(changed);
    }

    /// As [`App::commit`], with the call in the log of changes.
    pub(crate) async fn commit(&self, app: &App, mut tx: Tx, changes: Vec<Change>) -> Result<(), Problem> {
        self.record(&mut tx).await?;
        app.commit(tx, changes).await
    }

    /// As [`App::commit_and_send`], with the call in the log of changes.
    pub(crate) async fn commit_and_send(
        &self,
        app: &App,
        mut tx: Tx,
        signals: Vec<Signal>,
    ) -> Result<(), Problem> {
        self.record(&mut tx).await?;
        app.commit_and_send(tx, signals).await
    }

    async fn record(&self, tx: &mut Tx) -> Result<(), store::Error> {
        let Some(operation) = self.activity.operation else { return Ok(()) };
        let resource = self.activity.resource();
        let activity = NewActivity {
            at: self.now,
            actor: match self.caller.credential {
                Credential::Key { id, .. } => Actor::Key(id),
                Credential::Session { id, .. } => Actor::Session(id),
            },
            operation,
            resource: resource.as_ref().map(|changed| ChangedResource {
                kind: changed.kind.as_str(),
                id: changed.id,
                name: &changed.name,
            }),
            request_id: Some(&self.request_id),
        };
        insert_activity(tx, self.account_id, &activity).await
    }
}
