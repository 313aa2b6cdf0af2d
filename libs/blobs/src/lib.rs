//! Object storage for user files: a local folder or an S3 bucket, by configuration.
//!
//! A blob is named by its account and its digest, so equal bytes of one account are stored once, and no account ever reads
//! another's. References to blobs live in Postgres; this crate only stores and returns bytes.

mod blobs;
mod config;
mod connect;
mod error;
mod incoming;
mod measured;
mod name;
mod put_all;
mod sweep;

pub use blobs::{Blobs, Content};
pub use config::Config;
pub use error::Error;
pub use incoming::{Incoming, Received};
pub use name::Name;
