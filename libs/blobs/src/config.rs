//! The `[blobs]` section of a service's configuration.

use secrecy::SecretString;
use serde::Deserialize;

use crate::error::Error;

/// Section `[blobs]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A folder, as a path or `file:///…`, or `s3://bucket`.
    pub url: String,
    /// S3 endpoint; empty for Amazon's own.
    pub endpoint: String,
    /// S3 region.
    pub region: String,
    /// S3 access key id; empty for credentials from the environment.
    pub key_id: String,
    /// S3 secret access key.
    pub secret: SecretString,
    /// Whether the bucket is part of the path, as most stores except Amazon's require.
    pub path_style: bool,
}

impl Config {
    /// Rejects a folder for an installation of several edges: a file that one of them received would be missing at the
    /// others.
    pub fn check(&self, edges: u32) -> Result<(), Error> {
        if edges > 1 && !self.is_s3() {
            return Err(Error::Setting(format!(
                "`{}` is a folder, which {edges} edges (http.edges) can't share: use s3://bucket",
                self.url
            )));
        }
        Ok(())
    }

    /// Returns whether the store is S3.
    pub(crate) fn is_s3(&self) -> bool {
        self.url.starts_with("s3://")
    }
}
