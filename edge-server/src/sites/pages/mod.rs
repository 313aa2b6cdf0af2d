//! Pages of sites: rendered once per version, compressed, and cached.

pub(crate) mod encodings;
pub(crate) mod page_cache;
pub(crate) mod rendered_page;
pub(crate) mod tracker;
