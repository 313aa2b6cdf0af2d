//! DNS for custom domains and certificates: lookups for the checks of custom domains, and updates of one record for the proof
//! of a certificate's name. Owners choose what their DNS servers answer, so every lookup is bounded in time and size. This is
//! the only crate that depends on hickory-resolver.

mod find;
mod resolver;
mod unvalidated;
mod update;

pub use find::CHECK_TIMEOUT;
pub use resolver::{InvalidResolver, Resolver};
pub use update::{DynamicUpdate, InvalidUpdate, UpdateError, UpdateSettings};
