//! Bulk deletion: all blobs of an account, and orphans, which are uploads that a killed service left unfinished.

use std::path::Path as FilePath;
use std::time::SystemTime;

use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use uuid::Uuid;

use crate::blobs::Blobs;
use crate::error::Error;
use crate::name;

impl Blobs {
    /// Deletes all blobs and uploads of an account. Returns their number. After an error, some of them may be deleted.
    pub async fn delete_account(&self, account_id: Uuid) -> Result<u64, Error> {
        let mut deleted = 0;
        for prefix in [name::stored(account_id), name::incoming_of(account_id)] {
            deleted += self.delete_under(&prefix, None).await?;
            if let Some(folder) = &self.folder {
                remove_folder(&folder.join(prefix.as_ref())).await?;
            }
        }
        Ok(deleted)
    }

    /// Deletes uploads that were last written before that time. Returns their number. Unfinished multipart uploads in S3
    /// are left to the bucket's lifecycle rules.
    pub async fn delete_orphans(&self, before: SystemTime) -> Result<u64, Error> {
        match &self.folder {
            // `object_store` does not list files that are partially written.
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
    if_found(tokio::fs::remove_dir_all(folder).await)?;
    Ok(())
}

/// Deletes the files below a folder that were last written before that time. Returns their number. Files and folders that
/// are stored or deleted by others meanwhile are skipped.
fn delete_older(folder: &FilePath, before: SystemTime) -> Result<u64, Error> {
    let mut deleted = 0;
    let Some(entries) = if_found(std::fs::read_dir(folder))? else { return Ok(0) };
    for entry in entries {
        let entry = entry?;
        let Some(metadata) = if_found(entry.metadata())? else { continue };
        if metadata.is_dir() {
            deleted += delete_older(&entry.path(), before)?;
        } else if metadata.modified()? < before && if_found(std::fs::remove_file(entry.path()))?.is_some() {
            deleted += 1;
        }
    }
    Ok(deleted)
}

/// Returns `None` if there is no such file or folder.
fn if_found<T>(result: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}
