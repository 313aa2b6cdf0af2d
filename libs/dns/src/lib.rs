//! DNS lookups for the checks of custom domains. Owners choose what their DNS servers answer, so every lookup is bounded in
//! time and size. This is the only crate that depends on hickory-resolver.

mod find;
mod resolver;
mod unvalidated;

pub use find::CHECK_TIMEOUT;
pub use resolver::{InvalidResolver, Resolver};
