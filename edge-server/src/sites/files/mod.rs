//! Files of deployed sites and assets of accounts: sends them whole, compressed, or in part.

pub(crate) mod assets;
mod compressed_files;
pub(crate) mod file_body;
pub(crate) mod file_templates;
pub(crate) mod found_file;
pub(crate) mod ranges;
pub(crate) mod site_file;
pub(crate) mod site_files;
