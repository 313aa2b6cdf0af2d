//! The announced files of a deploy, with those stored bytes that processing reads.

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;

use blobs::Name;
use bytes::Bytes;
use domain::deploys::manifest::is_read;
use futures::{StreamExt, TryStreamExt};
use uuid::Uuid;
use web::Problem;

use super::spool::{Span, Spool};
use crate::App;

/// Files downloaded from the blob store at once.
const MAX_CONCURRENT: usize = 8;

/// The announced files of a deploy by path.
#[derive(Debug)]
pub(crate) struct AnnouncedFiles {
    pub(super) files: BTreeMap<String, AnnouncedFile>,
    pub(super) spool: Spool,
}

/// An announced file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnnouncedFile {
    pub(super) sha256: [u8; 32],
    pub(super) size_bytes: u64,
    /// Whether the account has stored its bytes.
    pub(super) is_stored: bool,
    /// Its bytes, if they are stored and are read.
    pub(super) downloaded: Option<Span>,
}

impl AnnouncedFiles {
    /// Downloads the stored HTML, style sheets and rules of a deploy to disk. All other stored files stay where they are.
    pub(crate) async fn download(app: &App, account_id: Uuid, deploy_id: Uuid) -> Result<Self, Problem> {
        let mut conn = store::acquire(&app.db).await?;
        let sources = store::deploys::sources::list_sources(&mut conn, account_id, deploy_id).await?;
        drop(conn);
        let files = sources.into_iter().map(|source| {
            let file = AnnouncedFile {
                sha256: source.sha256,
                size_bytes: source.size_bytes.unsigned_abs(),
                is_stored: source.is_stored,
                downloaded: None,
            };
            (source.path, file)
        });
        let mut files: BTreeMap<String, AnnouncedFile> = files.collect();
        let read: Vec<(String, AnnouncedFile)> = files
            .iter()
            .filter(|(path, file)| file.is_stored && is_read(path, file.size_bytes))
            .map(|(path, file)| (path.clone(), *file))
            .collect();
        let downloads = read.into_iter().map(async |(path, file)| {
            let memory = app.deploy_admission.acquire_memory(file.size_bytes).await;
            let name = Name { account_id, sha256: file.sha256 };
            let bytes: Vec<Bytes> = app.blobs.read(name, 0..file.size_bytes).await?.try_collect().await?;
            Ok::<_, Problem>((path, bytes, memory))
        });
        let mut downloads = pin!(futures::stream::iter(downloads).buffer_unordered(MAX_CONCURRENT));
        let mut spool = Spool::new().map_err(|error| failed_on_disk(&error))?;
        while let Some((path, bytes, _memory)) = downloads.try_next().await? {
            let span;
            (spool, span) = write(spool, bytes).await.map_err(|error| failed_on_disk(&error))?;
            if let Some(file) = files.get_mut(&path) {
                file.downloaded = Some(span);
            }
        }
        Ok(Self { files, spool })
    }

    /// Returns the bytes of a downloaded file.
    pub(super) fn read(&self, file: AnnouncedFile) -> io::Result<Vec<u8>> {
        let span = file.downloaded.ok_or_else(|| io::Error::other("an announced file was not downloaded"))?;
        self.spool.read_blocking(span)
    }
}

/// Appends bytes to the spool, off the async threads.
async fn write(mut spool: Spool, bytes: Vec<Bytes>) -> io::Result<(Spool, Span)> {
    let written = tokio::task::spawn_blocking(move || {
        let span = spool.push(&bytes.concat())?;
        Ok((spool, span))
    });
    written.await.map_err(io::Error::other)?
}

fn failed_on_disk(error: &io::Error) -> Problem {
    tracing::error!(%error, "failed to write announced files to disk");
    Problem::nothing_changed()
}
