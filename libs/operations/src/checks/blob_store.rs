//! The blob store: an object can be written, read and deleted.

use blobs::{Blobs, Name};
use bytes::Bytes;
use service::Rng;
use uuid::Uuid;

use super::finding::Finding;

/// Checks the store with an object of its own under an account that does not exist.
pub async fn check_blob_store(config: &blobs::Config, rng: &Rng) -> Finding {
    let name = Name { account_id: Uuid::nil(), sha256: rng.bytes() };
    let write_and_delete = async {
        let blobs = Blobs::connect(config)?;
        blobs.put(name, Bytes::from_static(b"a check of the operator program")).await?;
        let exists = blobs.contains(name).await?;
        blobs.delete(name).await?;
        Ok::<bool, blobs::Error>(exists)
    };
    let advice = match config.url.starts_with("s3://") {
        true => {
            "check blobs.url, blobs.endpoint, the bucket's name and that the key may put, get and delete objects"
        }
        false => "check blobs.url: the services' user must be able to write to this folder",
    };
    match write_and_delete.await {
        Ok(true) => Finding::ok("blobs", format!("an object was written to and deleted from {}", config.url)),
        Ok(false) => Finding::failed("blobs", "a written object is missing", advice),
        Err(error) => Finding::failed("blobs", error.to_string(), advice),
    }
}

/// Returns a failure if each of several edges would have a folder of its own.
#[must_use]
pub fn check_edges(config: &blobs::Config, edges: u32) -> Option<Finding> {
    let is_folder = !config.url.starts_with("s3://");
    (is_folder && edges > 1).then(|| {
        let detail =
            format!("http.edges is {edges}, and blobs.url is a folder, which only one edge would have");
        Finding::failed("blobs", detail, "set blobs.url to s3://bucket, or http.edges to 1")
    })
}
