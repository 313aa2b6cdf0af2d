//! Bounds what large request bodies take: bytes in memory at once ([`BodyBudget`]), and time, by the pace at which a body must
//! arrive ([`pace`]). Bodies of up to 1 MiB wait for no large one: they are bounded by the calls under way, as those of other
//! endpoints are.

mod budget;
mod json;
mod pace;

pub use budget::{BodyBudget, LargeBodies};
pub(crate) use budget::{BodyShare, HandedShare};
pub(crate) use json::{LargeJson, MAX_BYTES};
