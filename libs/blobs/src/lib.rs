//! Bytes that users hand in: in a local folder, or in an S3 store by configuration.
//!
//! A blob is named by whose it is and what is in it, so that the same bytes of one account are kept once, and no
//! account ever sees another's. Postgres knows who refers to a blob; this crate only keeps and gives bytes.

mod config;
mod error;
mod incoming;
mod name;
mod sweep;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use uuid::Uuid;

pub use config::Config;
pub use error::Error;
pub use incoming::{Incoming, Received};
pub use name::Name;

/// The bytes of a blob, or of a part of it, as they come.
pub type Content = BoxStream<'static, Result<Bytes, Error>>;

/// Where blobs are. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
    /// The folder, if they are in one.
    folder: Option<PathBuf>,
    /// How much of an upload is gathered before it is passed on, in bytes.
    part_bytes: usize,
}

impl Blobs {
    /// Bytes on their way in, of a length nobody knows yet. Until [`Blobs::keep`] they can't be read; should that
    /// never come, they are forgotten. `id` tells them from others of the account.
    pub fn receive(&self, account_id: Uuid, id: Uuid) -> Incoming {
        Incoming::new(self.clone(), account_id, id)
    }

    /// Gives bytes that have come in their final name, and that name.
    ///
    /// # Errors
    /// The store's.
    pub async fn keep(&self, received: &Received) -> Result<(), Error> {
        let to = received.name().path();
        match self.store.rename(received.path(), &to).await {
            // Kept before: the answer to an earlier attempt was lost.
            Err(object_store::Error::NotFound { .. }) if self.contains(received.name()).await? => Ok(()),
            other => Ok(other?),
        }
    }

    /// Keeps bytes that are at hand.
    ///
    /// # Errors
    /// The store's.
    pub async fn put(&self, name: Name, bytes: Bytes) -> Result<(), Error> {
        self.store.put(&name.path(), bytes.into()).await?;
        Ok(())
    }

    /// Whether there is such a blob.
    ///
    /// # Errors
    /// The store's.
    pub async fn contains(&self, name: Name) -> Result<bool, Error> {
        match self.store.head(&name.path()).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The bytes of a blob from `range.start` up to and without `range.end`.
    ///
    /// # Errors
    /// There is no such blob, or the store's; also in the middle of it.
    pub async fn read(&self, name: Name, range: Range<u64>) -> Result<Content, Error> {
        if range.is_empty() {
            return Ok(futures::stream::empty().boxed());
        }
        let options = object_store::GetOptions { range: Some(range.into()), ..Default::default() };
        let found = self.store.get_opts(&name.path(), options).await?;
        Ok(found.into_stream().map_err(Error::from).boxed())
    }

    /// Forgets a blob. That there is none is no error.
    ///
    /// # Errors
    /// The store's.
    pub async fn delete(&self, name: Name) -> Result<(), Error> {
        self.delete_at(&name.path()).await
    }

    async fn delete_at(&self, path: &Path) -> Result<(), Error> {
        match self.store.delete(path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
