//! Pages of sites: a rendered version with its compressed bodies.

pub(crate) mod compressor;
pub(crate) mod encoded;
pub(crate) mod encodings;
pub(crate) mod rendered_page;
pub(crate) mod tracker;
