//! Access control: keys, scopes, restrictions and sessions, and the encryption of secrets.

pub mod claims;
pub mod encryption;
pub mod idempotency;
mod key_id;
pub mod keys;
mod master_key_setting;
pub mod peppers;
pub mod restrictions;
pub mod scopes;
pub mod sessions;
pub mod sign_ins;
