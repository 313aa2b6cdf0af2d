//! Signs and verifies the URLs of uploads and downloads.

use chrono::{DateTime, Utc};
use domain::uploads::{Refused, Signer, Ticket};
use uuid::Uuid;

/// The signers of both kinds of URL.
pub(crate) struct UploadUrls {
    uploads: Signer,
    downloads: Signer,
}

impl UploadUrls {
    /// Derives the signing keys from `secret`.
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self { uploads: Signer::new(secret), downloads: Signer::for_downloads(secret) }
    }

    /// Returns the path for an upload.
    pub(crate) fn upload_path(&self, ticket: &Ticket) -> String {
        self.uploads.address(ticket)
    }

    /// Returns the path for a download.
    pub(crate) fn download_path(&self, ticket: &Ticket) -> String {
        self.downloads.address(ticket)
    }

    /// Verifies the query of an upload.
    pub(crate) fn verify_upload(&self, id: Uuid, query: &str, now: DateTime<Utc>) -> Result<Ticket, Refused> {
        self.uploads.read(id, query, now)
    }

    /// Verifies the query of a download.
    pub(crate) fn verify_download(
        &self,
        id: Uuid,
        query: &str,
        now: DateTime<Utc>,
    ) -> Result<Ticket, Refused> {
        self.downloads.read(id, query, now)
    }
}
