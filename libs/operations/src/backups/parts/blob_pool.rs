//! The part of blobs: a folder in which each blob is stored once, named by account and digest, for all backups.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use blobs::{Blobs, Name};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use sha2::{Digest as _, Sha256};
use store::Db;
use store::backups::{StoredBlob, list_blobs};
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;
use uuid::Uuid;

use super::super::file_list::{ListWriter, ListedFile};
use super::super::folder::BackupFolder;
use super::super::installation::Installation;
use super::super::manifest::BlobsPart;

/// Blobs listed by one query.
const PAGE: i64 = 1_000;
/// Blobs that are copied at the same time.
const MAX_CONCURRENT: usize = 8;
/// Bytes read at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// The list of a backup's blobs, in its folder.
pub(in super::super) const LIST: &str = "blobs.tsv";

/// What became of one blob.
enum CopyResult {
    Existed,
    Copied,
    /// It was deleted after Postgres listed it.
    Gone,
}

/// Copies the blobs that the pool lacks, and lists all of which Postgres knows.
pub(in super::super) async fn back_up(
    installation: &Installation<'_>,
    folder: &BackupFolder,
    id: &str,
) -> Result<BlobsPart> {
    let (began, pool) = (Instant::now(), folder.blobs());
    let mut list = ListWriter::create(&folder.of(id).join(LIST))?;
    let mut part =
        BlobsPart { count: 0, bytes: 0, copied_bytes: 0, gone: 0, list_sha256: String::new(), seconds: 0.0 };
    let mut pages = Pages::new(installation.db);
    while let Some(page) = pages.next().await? {
        let copies = page.iter().map(|blob| copy_to_pool(&installation.blobs, &pool, blob));
        let copies: Vec<CopyResult> =
            futures::stream::iter(copies).buffered(MAX_CONCURRENT).try_collect().await?;
        for (blob, copied) in page.iter().zip(copies) {
            let bytes = blob.size_bytes.unsigned_abs();
            match copied {
                CopyResult::Gone => {
                    part.gone += 1;
                    continue;
                }
                CopyResult::Copied => part.copied_bytes += bytes,
                CopyResult::Existed => {}
            }
            part.count += 1;
            part.bytes += bytes;
            list.add(&ListedFile { sha256: hex::encode(blob.sha256), bytes, path: path_of(blob) })?;
        }
        (installation.report)(&format!("  {} blobs", part.count));
    }
    part.list_sha256 = list.finish()?;
    part.seconds = began.elapsed().as_secs_f64();
    Ok(part)
}

/// Blobs after a restore.
#[derive(Debug, Default, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RestoredBlobs {
    /// Of which Postgres knows.
    pub known: u64,
    pub copied: u64,
    pub copied_bytes: u64,
    /// Those that neither the object store nor any backup has.
    pub missing: u64,
}

/// Copies the blobs of which Postgres knows and which the object store lacks.
pub(in super::super) async fn restore(
    installation: &Installation<'_>,
    folder: &BackupFolder,
) -> Result<RestoredBlobs> {
    let pool = folder.blobs();
    let mut restored = RestoredBlobs::default();
    let mut pages = Pages::new(installation.db);
    while let Some(page) = pages.next().await? {
        let copies = page.iter().map(|blob| copy_from_pool(installation, &pool, blob));
        let copies: Vec<CopyResult> =
            futures::stream::iter(copies).buffered(MAX_CONCURRENT).try_collect().await?;
        for (blob, copied) in page.iter().zip(copies) {
            restored.known += 1;
            match copied {
                CopyResult::Copied => {
                    restored.copied += 1;
                    restored.copied_bytes += blob.size_bytes.unsigned_abs();
                }
                CopyResult::Gone if blob.may_be_missing => {}
                CopyResult::Gone => {
                    restored.missing += 1;
                    (installation.report)(&format!("  missing: blob {}", path_of(blob)));
                }
                CopyResult::Existed => {}
            }
        }
        (installation.report)(&format!("  {} blobs, {} copied", restored.known, restored.copied));
    }
    Ok(restored)
}

/// Deletes the blobs that are in none of the lists. Returns their bytes.
pub(in super::super) fn delete_unlisted(pool: &Path, listed: &BTreeSet<String>) -> Result<u64> {
    let mut bytes = 0;
    if !pool.is_dir() {
        return Ok(0);
    }
    for path in super::super::file_list::files_below(pool)? {
        let name = path.strip_prefix(pool)?.to_string_lossy().into_owned();
        if !listed.contains(&name) {
            bytes += fs::metadata(&path)?.len();
            fs::remove_file(&path)?;
        }
    }
    Ok(bytes)
}

/// The blobs of which Postgres knows, page by page.
struct Pages<'a> {
    db: &'a Db,
    after: (Uuid, [u8; 32]),
}

impl<'a> Pages<'a> {
    fn new(db: &'a Db) -> Self {
        Self { db, after: (Uuid::nil(), [0; 32]) }
    }

    async fn next(&mut self) -> Result<Option<Vec<StoredBlob>>> {
        let mut conn = store::acquire(self.db).await?;
        let page = list_blobs(&mut conn, self.after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(None) };
        self.after = (last.account_id, last.sha256);
        Ok(Some(page))
    }
}

fn path_of(blob: &StoredBlob) -> String {
    format!("{}/{}", blob.account_id, hex::encode(blob.sha256))
}

async fn copy_to_pool(blobs: &Blobs, pool: &Path, blob: &StoredBlob) -> Result<CopyResult> {
    let target = pool.join(path_of(blob));
    if target.exists() {
        return Ok(CopyResult::Existed);
    }
    let name = Name { account_id: blob.account_id, sha256: blob.sha256 };
    let size = blob.size_bytes.unsigned_abs();
    let mut content = match blobs.read(name, 0..size).await {
        Err(error) if error.is_not_found() => return Ok(CopyResult::Gone),
        content => content.with_context(|| format!("reading blob {}", path_of(blob)))?,
    };
    let account = target.parent().context("a blob without an account")?;
    DirBuilder::new().recursive(true).mode(0o750).create(account)?;
    let partial = target.with_extension("partial");
    let mut file = File::create(&partial)?;
    let mut digest = Sha256::new();
    while let Some(bytes) = content.try_next().await? {
        digest.update(&bytes);
        file.write_all(&bytes)?;
    }
    ensure!(
        digest.finalize().as_slice() == blob.sha256,
        "blob {} has other bytes than its name says: the object store is damaged",
        path_of(blob)
    );
    file.sync_all()?;
    fs::rename(&partial, &target)?;
    Ok(CopyResult::Copied)
}

async fn copy_from_pool(
    installation: &Installation<'_>,
    pool: &Path,
    blob: &StoredBlob,
) -> Result<CopyResult> {
    let name = Name { account_id: blob.account_id, sha256: blob.sha256 };
    if installation.blobs.contains(name).await? {
        return Ok(CopyResult::Existed);
    }
    let path: PathBuf = pool.join(path_of(blob));
    let mut file = match tokio::fs::File::open(&path).await {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(CopyResult::Gone),
        file => file.with_context(|| path.display().to_string())?,
    };
    let mut incoming =
        installation.blobs.receive(blob.account_id, installation.rng.uuid_v7(installation.clock.now()));
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        if (&mut file).take(CHUNK_BYTES as u64).read_to_end(&mut chunk).await? == 0 {
            break;
        }
        incoming.write(Bytes::from(chunk)).await?;
    }
    let received = incoming.finish().await?;
    ensure!(
        received.name() == name,
        "{} has other bytes than its name says: the backup is damaged",
        path.display()
    );
    installation.blobs.store(&received).await?;
    Ok(CopyResult::Copied)
}
