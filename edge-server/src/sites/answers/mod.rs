//! What addresses of a site answer: finds it, renders it, and caches it.

pub(crate) mod address_headers;
pub(crate) mod answer;
pub(crate) mod answer_cache;
mod answer_key;
mod invalidation;
mod loader;
mod ruled_sites;
