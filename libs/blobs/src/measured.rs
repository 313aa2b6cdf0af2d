//! Measures requests to the object store.

use instruments::MeasuredStore;

/// Measures a request. That there is no such blob is an answer. A stream is measured until it begins, because its reader
/// decides how long it takes.
pub(crate) async fn measured<T>(
    request: impl Future<Output = object_store::Result<T>>,
) -> object_store::Result<T> {
    let is_answer = |response: &object_store::Result<T>| {
        matches!(response, Ok(_) | Err(object_store::Error::NotFound { .. }))
    };
    MeasuredStore::Blobs.measure(request, is_answer).await
}
