//! Stores many small blobs at once.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use instruments::MeasuredStore;

use crate::blobs::Blobs;
use crate::error::Error;
use crate::name::{self, Name};

/// Blobs of one call that are sent to S3 at once.
const MAX_CONCURRENT: usize = 8;

impl Blobs {
    /// Stores blobs from memory. In a folder, they share the fsyncs of their directories, of which one by one each would need
    /// its own. After an error, some of them may be stored.
    pub async fn put_all(&self, blobs: Vec<(Name, Bytes)>) -> Result<(), Error> {
        if let Some(folder) = self.folder.clone() {
            let written = async {
                let writing = tokio::task::spawn_blocking(move || write_all(&folder, &blobs));
                writing.await.map_err(io::Error::other)?
            };
            return Ok(MeasuredStore::Blobs.measure(written, Result::is_ok).await?);
        }
        let put = blobs.into_iter().map(|(name, bytes)| self.put(name, bytes));
        futures::stream::iter(put).buffer_unordered(MAX_CONCURRENT).try_collect().await
    }
}

/// Writes blobs under temporary names, and renames them when their bytes are on disk.
fn write_all(folder: &Path, blobs: &[(Name, Bytes)]) -> io::Result<()> {
    let mut written = Vec::with_capacity(blobs.len());
    for (name, bytes) in blobs {
        let incoming = folder.join(name::incoming_of(name.account_id).as_ref());
        create_folder(&incoming)?;
        let mut file = new_file(&incoming)?;
        file.write_all(bytes)?;
        written.push((file, folder.join(name.path().as_ref())));
    }
    // All are written before the first waits, so that the disk has them at once.
    for (file, _) in &written {
        file.as_file().sync_all()?;
    }
    let mut folders: Vec<_> =
        written.iter().filter_map(|(_, path)| path.parent().map(Path::to_owned)).collect();
    folders.dedup();
    for folder in &folders {
        create_folder(folder)?;
    }
    for (file, path) in written {
        file.persist(path)?;
    }
    folders.iter().try_for_each(|folder| fsync(folder))
}

/// Creates a file that other services may read. It is deleted on drop; after a kill, by the orphan scan.
fn new_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Creates a folder with its parents, each of them durably.
fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let Some(parent) = folder.parent() else { return Ok(()) };
    create_folder(parent)?;
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fsync(parent),
    }
}

fn fsync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
