//! Stores files that forms carry: what the edge does with a `PUT` of a file, the service that mounts the console does here.

use std::fmt;
use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

use axum::response::IntoResponse;
use http_body_util::BodyExt;
use web::Problem;

use crate::api_client::Refusal;

type Stored = Pin<Box<dyn Future<Output = Result<(), Problem>> + Send>>;

/// Stores a file for an upload URL of the API.
#[derive(Clone)]
pub struct FileStore(Arc<dyn Fn(String, File) -> Stored + Send + Sync>);

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileStore")
    }
}

impl FileStore {
    /// `store` gets the upload URL, which is the permission, and the file.
    pub fn new<F>(store: impl Fn(String, File) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), Problem>> + Send + 'static,
    {
        Self(Arc::new(move |url, file| Box::pin(store(url, file))))
    }

    pub(crate) async fn store(&self, upload_url: &str, file: File) -> Result<(), Refusal> {
        let Err(problem) = (self.0)(upload_url.to_owned(), file).await else { return Ok(()) };
        let (head, body) = problem.into_response().into_parts();
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Err(Refusal::read(head.status, &body, ""))
    }
}
