//! What the log of changes says of a call.
//!
//! A handler says nothing of it: the operation comes from the route, the author from the credential, and what was changed from
//! the check of the caller's restrictions. Only a creation names its resource, whose id did not exist when it was checked.

use std::sync::{Mutex, PoisonError};

use axum::extract::MatchedPath;
use domain::scopes::Resource;
use http::request::Parts;
use uuid::Uuid;

use crate::catalog;

/// What the log says of a call, beside its caller.
#[derive(Debug)]
pub(crate) struct ActivityContext {
    /// `None` for a read.
    pub(super) operation: Option<&'static str>,
    resource: Mutex<Option<Changed>>,
}

/// A resource that a call changes.
#[derive(Debug, Clone)]
pub(super) struct Changed {
    pub(super) kind: Resource,
    pub(super) id: Uuid,
    pub(super) name: String,
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

    /// Names the resource that is changed.
    pub(super) fn set(&self, changed: Changed) {
        *self.resource.lock().unwrap_or_else(PoisonError::into_inner) = Some(changed);
    }

    pub(super) fn resource(&self) -> Option<Changed> {
        self.resource.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
