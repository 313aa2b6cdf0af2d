//! Forgetting in bulk: what an account leaves behind, and what killed services left halfway.

use std::path::Path as FilePath;
use std::time::SystemTime;

use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use uuid::Uuid;

use crate::{Blobs, Error, name};

impl Blobs {
    /// Forgets everything of an account, what is on its way in included. Gives how much there was.
    ///
    /// # Errors
    /// The store's; some may be gone then.
    pub async fn delete_account(&self, account_id: Uuid) -> Result<u64, Error> {
        let mut deleted = 0;
        for prefix in [name::kept(account_id), name::incoming_of(account_id)] {
            deleted += self.delete_under(&prefix, None).await?;
            if let Some(folder) = &self.folder {
                remove_folder(&folder.join(prefix.as_ref())).await?;
            }
        }
        Ok(deleted)
    }

    /// Forgets what has been on its way in since before that time: whoever took it is no more. The parts of an
    /// upload that an S3 store has not been told the end of are its own lifecycle rules' to forget.
    ///
    /// # Errors
    /// The store's.
    pub async fn delete_orphans(&self, before: SystemTime) -> Result<u64, Error> {
        match &self.folder {
            // The store itself doesn't show files that are only half written.
            Some(folder) => {
                let folder = folder.join(name::incoming().as_ref());
                tokio::task::spawn_blocking(move || delete_older(&folder, before)).await.unwrap_or(Ok(0))
            }
            None => self.delete_under(&name::incoming(), Some(before)).await,
        }
    }

    async fn delete_under(&self, prefix: &Path, before: Option<SystemTime>) -> Result<u64, Error> {
        let mut listed = self.store.list(Some(prefix));
        let mut deleted = 0;
        while let Some(found) = listed.try_next().await? {
            if before.is_none_or(|before| SystemTime::from(found.last_modified) < before) {
                self.delete_at(&found.location).await?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }
}

async fn remove_folder(folder: &FilePath) -> Result<(), Error> {
    match tokio::fs::remove_dir_all(folder).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Deletes the files below a folder that were last written before that time.
fn delete_older(folder: &FilePath, before: SystemTime) -> Result<u64, Error> {
    let mut deleted = 0;
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let about = match entry.metadata() {
            // Kept, or forgotten, meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            about => about?,
        };
        if about.is_dir() {
            deleted += delete_older(&entry.path(), before)?;
        } else if about.modified()? < before {
            std::fs::remove_file(entry.path())?;
            deleted += 1;
        }
    }
    Ok(deleted)
}
