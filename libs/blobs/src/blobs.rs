//! The blob store: reads and deletes single blobs.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::error::Error;
use crate::measured::measured;
use crate::name::Name;

/// A stream of the bytes of a blob or of a range of it.
pub type Content = BoxStream<'static, Result<Bytes, Error>>;

/// The blob store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Blobs {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// `None` if the store is S3.
    pub(crate) folder: Option<PathBuf>,
    /// Size of the parts in which an upload is written.
    pub(crate) part_bytes: usize,
}

impl Blobs {
    /// Stores a blob from memory.
    pub async fn put(&self, name: Name, bytes: Bytes) -> Result<(), Error> {
        measured(self.store.put(&name.path(), bytes.into())).await?;
        Ok(())
    }

    /// Returns whether the blob exists.
    pub async fn contains(&self, name: Name) -> Result<bool, Error> {
        match measured(self.store.head(&name.path())).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Streams the bytes of a blob from `range.start` up to but excluding `range.end`. The stream may also fail midway.
    pub async fn read(&self, name: Name, range: Range<u64>) -> Result<Content, Error> {
        if range.is_empty() {
            return Ok(futures::stream::empty().boxed());
        }
        let options = object_store::GetOptions { range: Some(range.into()), ..Default::default() };
        let found = measured(self.store.get_opts(&name.path(), options)).await?;
        Ok(found.into_stream().map_err(Error::from).boxed())
    }

    /// Deletes a blob. Succeeds if it does not exist.
    pub async fn delete(&self, name: Name) -> Result<(), Error> {
        self.delete_at(&name.path()).await
    }

    pub(crate) async fn delete_at(&self, path: &Path) -> Result<(), Error> {
        match measured(self.store.delete(path)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
