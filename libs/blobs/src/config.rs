//! Where blobs are kept, as settings say it.

use std::path::PathBuf;
use std::sync::Arc;

use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::{Blobs, Error};

/// What S3 takes for a part of an upload but the last, at least: 5 MiB.
const S3_PART_BYTES: usize = 8 << 20;
const FOLDER_PART_BYTES: usize = 1 << 20;

/// Section `[blobs]` of a service's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A folder, as a path or `file:///…`, or `s3://bucket`.
    pub url: String,
    /// The S3 store's address; empty for Amazon's own.
    pub endpoint: String,
    /// The S3 store's region.
    pub region: String,
    /// The id of the key to the S3 store.
    pub key_id: String,
    /// That key.
    pub secret: SecretString,
    /// Whether the bucket stands in the path, as most stores but Amazon's want it.
    pub path_style: bool,
}

impl Blobs {
    /// The blobs of a configuration. A folder is made if there is none; an S3 store is not yet spoken to.
    ///
    /// # Errors
    /// The setting can't be used.
    pub fn connect(config: &Config) -> Result<Self, Error> {
        match config.url.strip_prefix("s3://") {
            Some(bucket) => Self::in_s3(config, bucket.trim_end_matches('/')),
            None => Self::in_folder(config.url.strip_prefix("file://").unwrap_or(&config.url)),
        }
    }

    fn in_folder(folder: &str) -> Result<Self, Error> {
        if folder.is_empty() || folder.contains("://") {
            return Err(Error::Setting(format!("`{folder}` is neither a folder nor s3://bucket")));
        }
        let folder = PathBuf::from(folder);
        std::fs::create_dir_all(&folder)?;
        let store = LocalFileSystem::new_with_prefix(&folder)?.with_fsync(true);
        Ok(Self { store: Arc::new(store), folder: Some(folder), part_bytes: FOLDER_PART_BYTES })
    }

    fn in_s3(config: &Config, bucket: &str) -> Result<Self, Error> {
        // Without one the HTTP client can't be built. Whoever installed one before us has chosen the same.
        let _already_there = rustls::crypto::ring::default_provider().install_default();
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(&config.region)
            .with_access_key_id(&config.key_id)
            .with_secret_access_key(config.secret.expose_secret())
            .with_virtual_hosted_style_request(!config.path_style);
        if !config.endpoint.is_empty() {
            let is_plain = config.endpoint.starts_with("http://");
            builder = builder.with_endpoint(&config.endpoint).with_allow_http(is_plain);
        }
        Ok(Self { store: Arc::new(builder.build()?), folder: None, part_bytes: S3_PART_BYTES })
    }
}
