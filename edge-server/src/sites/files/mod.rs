//! Files of sites and accounts: looked up, and sent whole or in part.

pub(crate) mod assets;
pub(crate) mod file_body;
pub(crate) mod ranges;
pub(crate) mod site_files;
