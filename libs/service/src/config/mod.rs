//! Layered settings: a commented default file built into the program, then a settings file, then the environment, then
//! `--set`. The default file is the manual and the schema: it fixes the keys and their types, and every other key is
//! an error.
//!
//! An environment variable `WEBRUNTIME_<SECTION>__<KEY>` and `--set section.key=value` name the same setting. All four
//! services can share one list of them: a service ignores an entry for a section it doesn't have and reports it in
//! [`Loaded::unused`], but rejects an unknown key in a section it has.
//!
//! A key `X_file` beside a secret `X` names a file with its value. Beyond localhost, example values of secrets and unsafe
//! combinations are rejected.

mod base_config;
mod config_error;
mod defaults;
pub mod duration;
mod insecure;
mod layers;
mod load;
mod schema;
mod secret_files;
mod secret_names;
mod sources;
mod typed;

pub use base_config::{BASE_DEFAULTS, BaseConfig, Listen, ProxyProtocol};
pub use config_error::Error;
pub use defaults::{Defaults, RenamedKeys};
pub use load::{Loaded, load};
pub use secrecy::{ExposeSecret, SecretString as Secret};
pub use sources::{ENVIRONMENT_PREFIX, Sources};

#[cfg(test)]
mod tests;
