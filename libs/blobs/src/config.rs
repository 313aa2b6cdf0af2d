//! The `[blobs]` section of a service's configuration.

use secrecy::SecretString;
use serde::Deserialize;

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
    /// S3 access key id.
    pub key_id: String,
    /// S3 secret access key.
    pub secret: SecretString,
    /// Whether the bucket is part of the path, as most stores except Amazon's require.
    pub path_style: bool,
}
