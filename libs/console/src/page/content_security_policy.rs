//! The headers of every page.

use anyhow::Context;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::static_files::StaticFiles;

/// The headers of every page.
#[derive(Debug)]
pub(crate) struct PageHeaders {
    headers: [(HeaderName, HeaderValue); 7],
}

impl PageHeaders {
    /// Allows the console's script and style sheet by their exact addresses: `'self'` would run a script that a stranger
    /// uploaded to a form, because files are served from this host, too.
    pub(crate) fn new(base: &str, files: &StaticFiles) -> anyhow::Result<Self> {
        let (script, style) = (&files.script.path, &files.style.path);
        let policy = format!(
            "default-src 'none'; script-src {base}{script}; style-src {base}{style}; img-src 'self'; connect-src 'self'; \
             frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types console"
        );
        let fixed = HeaderValue::from_static;
        Ok(Self {
            headers: [
                (header::CONTENT_SECURITY_POLICY, HeaderValue::from_str(&policy).context("http.base_url")?),
                (header::X_FRAME_OPTIONS, fixed("DENY")),
                (header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff")),
                (header::REFERRER_POLICY, fixed("same-origin")),
                (HeaderName::from_static("cross-origin-opener-policy"), fixed("same-origin")),
                (HeaderName::from_static("cross-origin-resource-policy"), fixed("same-origin")),
                (header::CACHE_CONTROL, fixed("no-store")),
            ],
        })
    }

    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
    }
}
