//! Signed addresses of uploads, as the edge takes them.

use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::addresses::Addresses;
use domain::uploads::{Signer, Ticket};
use schemars::JsonSchema;
use serde::Serialize;
use store::uploads::NewUpload;

/// How upload addresses are given out.
#[derive(Debug)]
pub struct Uploads {
    signer: Signer,
    expire_after: Duration,
}

/// What must be sent with an upload.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UploadHeaders {
    #[serde(rename = "Content-Type")]
    content_type: String,
}

impl UploadHeaders {
    /// The bytes are of that type.
    pub(crate) fn new(content_type: &str) -> Self {
        Self { content_type: content_type.to_owned() }
    }
}

impl Uploads {
    /// Addresses signed with what is derived from a secret that the edge shares.
    pub(crate) fn new(secret: &str, expire_after: Duration) -> Self {
        Self { signer: Signer::new(secret.as_bytes()), expire_after }
    }

    /// Until when an address of now is good, to the second.
    pub(crate) fn expiry(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let after = TimeDelta::from_std(self.expire_after).unwrap_or(TimeDelta::MAX);
        now.checked_add_signed(after).unwrap_or(DateTime::<Utc>::MAX_UTC).trunc_subsecs(0)
    }

    /// Where an upload goes.
    pub(crate) fn address(&self, addresses: &Addresses, upload: &NewUpload<'_>) -> String {
        let NewUpload { id, size_bytes, expires_at, .. } = upload;
        let ticket = Ticket { id: *id, size_bytes: *size_bytes, expires_at: expires_at.timestamp() };
        format!("{}{}", addresses.base(), self.signer.address(&ticket))
    }
}
