//! Opens the blob store of a configuration.

use std::path::PathBuf;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use secrecy::ExposeSecret;

use crate::blobs::Blobs;
use crate::config::Config;
use crate::error::Error;

/// S3 requires at least 5 MiB for every part of an upload but the last.
const S3_PART_BYTES: usize = 8 << 20;
const FOLDER_PART_BYTES: usize = 1 << 20;

/// The keys of credentials: an own key, or the role of a web identity, a container or a machine.
const CREDENTIALS: [AmazonS3ConfigKey; 11] = [
    AmazonS3ConfigKey::AccessKeyId,
    AmazonS3ConfigKey::SecretAccessKey,
    AmazonS3ConfigKey::Token,
    AmazonS3ConfigKey::WebIdentityTokenFile,
    AmazonS3ConfigKey::RoleArn,
    AmazonS3ConfigKey::RoleSessionName,
    AmazonS3ConfigKey::StsEndpoint,
    AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
    AmazonS3ConfigKey::ContainerCredentialsFullUri,
    AmazonS3ConfigKey::ContainerAuthorizationTokenFile,
    AmazonS3ConfigKey::MetadataEndpoint,
];

/// Adds the credentials of the environment and nothing else of it: a variable for another program must not lead us to
/// another endpoint.
fn with_credentials_of(builder: AmazonS3Builder, environment: &AmazonS3Builder) -> AmazonS3Builder {
    CREDENTIALS.into_iter().fold(builder, |builder, key| match environment.get_config_value(&key) {
        Some(value) => builder.with_config(key, value),
        None => builder,
    })
}

impl Blobs {
    /// Opens the store. A missing folder is created; S3 is not contacted yet.
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
        // The HTTP client requires an installed provider. Any provider installed before is also ring.
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(&config.region)
            .with_virtual_hosted_style_request(!config.path_style);
        builder = match config.key_id.as_str() {
            "" => with_credentials_of(builder, &AmazonS3Builder::from_env()),
            key_id => {
                builder.with_access_key_id(key_id).with_secret_access_key(config.secret.expose_secret())
            }
        };
        if !config.endpoint.is_empty() {
            let is_http = config.endpoint.starts_with("http://");
            builder = builder.with_endpoint(&config.endpoint).with_allow_http(is_http);
        }
        Ok(Self { store: Arc::new(builder.build()?), folder: None, part_bytes: S3_PART_BYTES })
    }
}
