//! What a row of the matrix says.

use domain::scopes::Resource;
use serde_json::Value;
use uuid::Uuid;

use super::resources::Resources;

/// The subject of a call, which decides the allowed callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallSubject {
    /// Public.
    Nothing,
    /// The account itself.
    Account,
    /// A resource with its id in the request.
    Names(Resource),
    /// One of several resources, which is rejected individually.
    NamesAmongOthers(Resource),
    /// The account's first resource of the kind, without an id.
    First(Resource),
    /// A new resource of the kind, or all future ones.
    Creates(Resource),
    /// A list of the resources of the kind that the caller can access.
    Lists(Resource),
}

/// The variable parts of a request.
#[derive(Debug)]
pub(super) struct RecordedRequest {
    /// The first id in the path.
    pub(super) id: Option<Uuid>,
    /// The second id in the path.
    pub(super) inner: Option<Uuid>,
    /// The query, with its question mark.
    pub(super) query: String,
    pub(super) body: Value,
}

/// A row of the matrix.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) operation: &'static str,
    /// The position of the id in question, or the omitted part; empty for the path.
    pub(super) position: &'static str,
    pub(super) subject: CallSubject,
    /// Whether the call changes or deletes the resource.
    pub(super) consumes: bool,
    /// Builds the request from the accessible resources and the id in question.
    pub(super) build_request: fn(&Resources, &Resources) -> RecordedRequest,
}
