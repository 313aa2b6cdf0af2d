//! Signed upload URLs, which the edge verifies.

use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::addresses::Addresses;
use domain::uploads::{Refused, Signer, Ticket};
use schemars::JsonSchema;
use serde::Serialize;
use store::uploads::NewUpload;
use uuid::Uuid;

/// Signs upload URLs.
#[derive(Debug)]
pub struct Uploads {
    signer: Signer,
    url_ttl: Duration,
}

/// The headers that the upload request must carry.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UploadHeaders {
    /// Media type of the file.
    #[serde(rename = "Content-Type")]
    content_type: String,
}

impl UploadHeaders {
    pub(crate) fn new(content_type: &str) -> Self {
        Self { content_type: content_type.to_owned() }
    }
}

impl Uploads {
    /// Derives the signing key from a secret shared with the edge.
    pub(crate) fn new(secret: &str, url_ttl: Duration) -> Self {
        Self { signer: Signer::new(secret.as_bytes()), url_ttl }
    }

    /// Returns the expiry of a URL signed now, in whole seconds.
    pub(crate) fn expires_at(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let ttl = TimeDelta::from_std(self.url_ttl).unwrap_or(TimeDelta::MAX);
        now.checked_add_signed(ttl).unwrap_or(DateTime::<Utc>::MAX_UTC).trunc_subsecs(0)
    }

    /// Verifies the query of a signed URL for the upload with this id.
    pub(crate) fn verify(&self, id: Uuid, query: &str, now: DateTime<Utc>) -> Result<Ticket, Refused> {
        self.signer.read(id, query, now)
    }

    /// Returns the signed URL of an upload.
    pub(crate) fn url(&self, addresses: &Addresses, upload: &NewUpload<'_>) -> String {
        let NewUpload { id, size_bytes, expires_at, .. } = upload;
        let ticket = Ticket { id: *id, size_bytes: *size_bytes, expires_at: expires_at.timestamp() };
        format!("{}{}", addresses.base(), self.signer.address(&ticket))
    }
}
