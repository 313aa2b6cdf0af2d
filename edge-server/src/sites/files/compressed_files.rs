//! Compressed bodies of files, kept by content.
//!
//! A file is compressed once, off the async threads, when it is first requested by a client that accepts a coding. That
//! response waits for it a moment, so that also the first visitor of a site loads little; on a busy machine it is sent as
//! it is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use blobs::{Blobs, Name};
use cache::{Bounds, StaleOnErrorCache};
use domain::static_sites::compression::is_compressible;
use futures::TryStreamExt;
use store::served_files::ServedFile;

use crate::config::weight;
use crate::metrics::CacheName;
use crate::sites::pages::compressor::Compressor;
use crate::sites::pages::encoded::{Compressed, MIN_COMPRESSED_BYTES};

/// Larger files are sent as they are.
const MAX_INPUT_BYTES: u64 = 8 << 20;
/// How long a response waits for the compression of its file.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// Compressed bodies by content.
#[derive(Clone)]
pub(super) struct CompressedFiles {
    blobs: Blobs,
    files: StaleOnErrorCache<Name, Arc<Compressed>>,
    compressor: Compressor,
}

/// The file was not compressed: too many others wait, or it can't be read.
#[derive(Debug)]
struct NotCompressed;

impl CompressedFiles {
    pub(super) fn new(blobs: Blobs, bounds: Bounds, compressor: Compressor) -> Self {
        let weigh = |_: &Name, file: &Arc<Compressed>| weight(256 + file.weight_bytes());
        Self { blobs, files: CacheName::CompressedFiles.new_cache(bounds, weigh), compressor }
    }

    /// Returns the compressed bodies of a file, if they are cached.
    pub(super) fn peek(&self, name: &Name, now: Instant) -> Option<Arc<Compressed>> {
        self.files.peek(name, now)
    }

    /// Returns the compressed bodies of a file, if they are ready soon.
    pub(super) async fn find(&self, file: &ServedFile) -> Option<Arc<Compressed>> {
        let name = Name { account_id: file.account_id, sha256: file.sha256 };
        if let Some(compressed) = self.peek(&name, Instant::now()) {
            return Some(compressed);
        }
        let (files, size) = (self.clone(), u64::try_from(file.size_bytes).unwrap_or_default());
        // In a task of its own: it goes on when the response does not wait any longer.
        let task = tokio::spawn(async move { files.compress(name, size).await });
        tokio::time::timeout(MAX_WAIT, task).await.ok()?.ok()?.ok()
    }

    async fn compress(&self, name: Name, size: u64) -> Result<Arc<Compressed>, NotCompressed> {
        let load = async {
            let _permit = self.compressor.acquire(name.account_id).await.ok_or(NotCompressed)?;
            let read = async {
                let parts: Vec<bytes::Bytes> = self.blobs.read(name, 0..size).await?.try_collect().await?;
                Ok::<_, blobs::Error>(parts.concat())
            };
            let bytes = read.await.map_err(|error| {
                tracing::warn!(%error, "a file can't be read for compression");
                NotCompressed
            })?;
            let compressed = tokio::task::spawn_blocking(move || Compressed::new(&bytes)).await;
            compressed.map(Arc::new).map_err(|_panicked| NotCompressed)
        };
        Ok(self.files.get(&name, Instant::now(), load).await?.value)
    }
}

/// Returns whether a file is sent compressed.
pub(super) fn is_compressed(file: &ServedFile) -> bool {
    let size = u64::try_from(file.size_bytes).unwrap_or_default();
    (MIN_COMPRESSED_BYTES as u64..=MAX_INPUT_BYTES).contains(&size) && is_compressible(&file.content_type)
}
