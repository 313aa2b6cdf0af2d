//! What backups and restores need of Postgres.

pub mod deletions;
mod installation;

pub use installation::{
    ConnectedClient, StoredBlob, count_rows, find_missing_sites, has_action, is_in_recovery, list_blobs,
    list_other_clients, lock_account,
};
