//! Sums of metrics by a key: [`keyed_sums::KeyedSums`] of [`selection::KeyedQuery`]s. Those of settled days are cached.

pub(super) mod buckets;
pub(crate) mod cache;
pub(super) mod keyed_sums;
mod scan;
pub(super) mod sections;
pub(super) mod selection;
