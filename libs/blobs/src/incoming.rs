//! Uploads: bytes are counted and digested as they arrive, and no reader sees them until they are stored.

use bytes::Bytes;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayloadMut};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::blobs::Blobs;
use crate::error::Error;
use crate::measured::measured;
use crate::name::{self, Name};

/// An upload in progress. Dropping it before [`Incoming::finish`] deletes its bytes.
#[derive(Debug)]
pub struct Incoming {
    blobs: Blobs,
    account_id: Uuid,
    path: Path,
    digest: Sha256,
    size: u64,
    buffered: PutPayloadMut,
    /// The multipart upload, started when the first part is full.
    parts: Option<Box<dyn MultipartUpload>>,
}

/// A complete upload. Dropping it deletes its bytes unless [`Blobs::store`] has stored them.
#[derive(Debug)]
pub struct Received {
    blobs: Blobs,
    path: Path,
    name: Name,
    size: u64,
}

impl Blobs {
    /// Starts an upload of unknown length. Its bytes can't be read until [`Blobs::store`], and are deleted without it. `id`
    /// distinguishes it from other uploads of the account.
    pub fn receive(&self, account_id: Uuid, id: Uuid) -> Incoming {
        Incoming::new(self.clone(), account_id, id)
    }

    /// Renames a complete upload to its final name. May be repeated.
    pub async fn store(&self, received: &Received) -> Result<(), Error> {
        match measured(self.store.rename(&received.path, &received.name.path())).await {
            // An earlier attempt has renamed it, and its response was lost.
            Err(object_store::Error::NotFound { .. }) if self.contains(received.name).await? => Ok(()),
            other => Ok(other?),
        }
    }
}

impl Incoming {
    fn new(blobs: Blobs, account_id: Uuid, id: Uuid) -> Self {
        Self {
            blobs,
            account_id,
            path: name::incoming_of(account_id).join(id.to_string()),
            digest: Sha256::new(),
            size: 0,
            buffered: PutPayloadMut::new(),
            parts: None,
        }
    }

    /// Returns the number of bytes received so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends bytes.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.size += bytes.len() as u64;
        self.digest.update(&bytes);
        self.buffered.push(bytes);
        if self.buffered.content_length() >= self.blobs.part_bytes {
            let part = std::mem::take(&mut self.buffered).freeze();
            let parts = match &mut self.parts {
                Some(parts) => parts,
                None => self.parts.insert(measured(self.blobs.store.put_multipart(&self.path)).await?),
            };
            measured(parts.put_part(part)).await?;
        }
        Ok(())
    }

    /// Completes the upload.
    pub async fn finish(mut self) -> Result<Received, Error> {
        let last = std::mem::take(&mut self.buffered).freeze();
        match &mut self.parts {
            Some(parts) => {
                if last.content_length() > 0 {
                    measured(parts.put_part(last)).await?;
                }
                measured(parts.complete()).await?;
                self.parts = None;
            }
            None => drop(measured(self.blobs.store.put(&self.path, last)).await?),
        }
        let sha256 = std::mem::take(&mut self.digest).finalize().into();
        let name = Name { account_id: self.account_id, sha256 };
        Ok(Received { blobs: self.blobs.clone(), path: self.path.clone(), name, size: self.size })
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take() else { return };
        in_background(async move {
            if let Err(error) = parts.abort().await {
                tracing::debug!(%error, "aborting an upload failed; the orphan scan deletes it");
            }
        });
    }
}

impl Received {
    /// Returns the final name of the blob.
    pub fn name(&self) -> Name {
        self.name
    }

    /// Returns its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        let (blobs, path) = (self.blobs.clone(), self.path.clone());
        in_background(async move {
            if let Err(error) = blobs.delete_at(&path).await {
                tracing::debug!(%error, "deleting an upload failed; the orphan scan deletes it");
            }
        });
    }
}

/// Runs a cleanup after a drop. Without a runtime, the orphan scan does it later.
fn in_background(cleanup: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(cleanup);
    }
}
