//! Files of deployed sites and assets of accounts: looks them up, and sends them whole or in part.

pub(crate) mod assets;
pub(crate) mod file_body;
pub(crate) mod ranges;
pub(crate) mod site_files;
