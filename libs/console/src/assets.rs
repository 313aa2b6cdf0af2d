//! What all pages share: templates, static files and headers.

use crate::page::{PageHeaders, Templates};
use crate::static_files::StaticFiles;

/// Templates, static files and headers of the pages of one installation.
#[derive(Debug)]
pub struct Assets {
    pub(crate) base: String,
    pub(crate) templates: Templates,
    pub(crate) static_files: StaticFiles,
    pub(crate) page_headers: PageHeaders,
}

impl Assets {
    /// Prepares the pages for this base URL.
    ///
    /// # Errors
    /// The base URL is no header value, or a template is invalid.
    pub fn new(base: &str) -> anyhow::Result<Self> {
        let static_files = StaticFiles::new();
        Ok(Self {
            base: base.to_owned(),
            templates: Templates::new()?,
            page_headers: PageHeaders::new(base, &static_files)?,
            static_files,
        })
    }
}
