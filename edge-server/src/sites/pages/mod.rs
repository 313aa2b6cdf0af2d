//! Pages of sites: renders a version once, compresses it, and caches it.

pub(crate) mod encodings;
pub(crate) mod page_cache;
pub(crate) mod rendered_page;
pub(crate) mod tracker;
