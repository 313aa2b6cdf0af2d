//! Bytes on their way in: counted and digested as they pass, and nowhere to be seen until they are kept.

use bytes::Bytes;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayloadMut};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{Blobs, Error, Name, name};

/// Bytes on their way in. Dropped before [`Incoming::finish`], they are forgotten.
#[derive(Debug)]
pub struct Incoming {
    blobs: Blobs,
    account_id: Uuid,
    path: Path,
    digest: Sha256,
    size: u64,
    gathered: PutPayloadMut,
    /// Begun once more has come than one part.
    parts: Option<Box<dyn MultipartUpload>>,
}

/// Bytes that have come, all of them. Dropped, they are forgotten unless [`Blobs::keep`] kept them.
#[derive(Debug)]
pub struct Received {
    blobs: Blobs,
    path: Path,
    name: Name,
    size: u64,
}

impl Incoming {
    pub(crate) fn new(blobs: Blobs, account_id: Uuid, id: Uuid) -> Self {
        Self {
            blobs,
            account_id,
            path: name::incoming_of(account_id).join(id.to_string()),
            digest: Sha256::new(),
            size: 0,
            gathered: PutPayloadMut::new(),
            parts: None,
        }
    }

    /// How many bytes have come so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// The store's.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.size += bytes.len() as u64;
        self.digest.update(&bytes);
        self.gathered.push(bytes);
        if self.gathered.content_length() >= self.blobs.part_bytes {
            let part = std::mem::take(&mut self.gathered).freeze();
            let parts = match &mut self.parts {
                Some(parts) => parts,
                None => self.parts.insert(self.blobs.store.put_multipart(&self.path).await?),
            };
            parts.put_part(part).await?;
        }
        Ok(())
    }

    /// There are no more.
    ///
    /// # Errors
    /// The store's.
    pub async fn finish(mut self) -> Result<Received, Error> {
        let last = std::mem::take(&mut self.gathered).freeze();
        match &mut self.parts {
            Some(parts) => {
                if last.content_length() > 0 {
                    parts.put_part(last).await?;
                }
                parts.complete().await?;
                self.parts = None;
            }
            None => drop(self.blobs.store.put(&self.path, last).await?),
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
                tracing::debug!(%error, "a broken upload is left to the sweep");
            }
        });
    }
}

impl Received {
    /// What the blob will be called.
    pub fn name(&self) -> Name {
        self.name
    }

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        let (blobs, path) = (self.blobs.clone(), self.path.clone());
        in_background(async move {
            if let Err(error) = blobs.delete_at(&path).await {
                tracing::debug!(%error, "an upload that wasn't kept is left to the sweep");
            }
        });
    }
}

/// Tidies up after whoever was dropped. Without a runtime the sweep does it.
fn in_background(work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(work);
    }
}
