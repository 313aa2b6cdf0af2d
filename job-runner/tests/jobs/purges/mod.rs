//! Deletion of expired accounts, events and bytes.

mod blobs;
mod coverage;
mod kept_files;
mod previews;
mod trials;
