//! The cached page of an untouched form.
//!
//! A page contains a token with the time it was shown, so it changes every second. The page is rendered once per form and
//! presentation, with a gap for the token, and compressed around the gap. It is filled in once per second, however often it is
//! shown.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderValue, header};
use store::forms::{Form, OpenForm};

use super::gzip_with_gap::GzipWithGap;
use super::page::Page;
use crate::sites::cached_response::CachedResponse;
use crate::sites::header_templates::HeaderTemplate;

/// Memory of a page beside its bytes.
const OVERHEAD_BYTES: usize = 2_048;

static GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// A rendered page with a gap for the token.
pub(crate) struct CachedFormPage {
    /// The form that was rendered; the page is not valid for a later version.
    open: Arc<OpenForm>,
    before: String,
    after: String,
    gzip: Option<GzipWithGap>,
    template: HeaderTemplate,
    filled: Mutex<Filled>,
}

/// The page as it is sent in one second.
#[derive(Default)]
struct Filled {
    second: i64,
    plain: Bytes,
    gzip: Option<Bytes>,
}

impl CachedFormPage {
    /// Splits a page at the placeholder of its token.
    pub(super) fn new(open: Arc<OpenForm>, page: Page, placeholder: &str) -> Self {
        let Page { html, mut headers } = page;
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding, accept-language"));
        let (before, after) = html.split_once(placeholder).unwrap_or((&html, ""));
        let gzip = GzipWithGap::new(before, after)
            .inspect_err(|error| tracing::warn!(%error, "a form could not be compressed"));
        Self {
            open,
            before: before.to_owned(),
            after: after.to_owned(),
            gzip: gzip.ok(),
            template: HeaderTemplate::new(headers),
            filled: Mutex::default(),
        }
    }

    /// Returns whether the page was rendered from this version of the form.
    pub(crate) fn is_of(&self, open: &Arc<OpenForm>) -> bool {
        Arc::ptr_eq(&self.open, open)
    }

    pub(super) fn form(&self) -> &Form {
        &self.open.form
    }

    /// Returns the number of bytes of the uncompressed page.
    pub(crate) fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// Returns the memory of the page in bytes.
    pub(crate) fn weight(&self) -> usize {
        let gzip = self.gzip.as_ref().map_or(0, GzipWithGap::len);
        OVERHEAD_BYTES + self.template.lines.len() + 2 * (self.len() + gzip)
    }

    /// Returns the response with a filled-in body.
    pub(crate) fn response<'a>(&'a self, body: &'a Bytes, is_gzip: bool) -> CachedResponse<'a> {
        CachedResponse::new(&self.template, is_gzip.then_some(&GZIP), body)
    }

    /// Returns the body for a second, and whether it is compressed.
    pub(super) fn body(
        &self,
        second: i64,
        accepts_gzip: bool,
        token: impl FnOnce() -> String,
    ) -> (Bytes, bool) {
        let mut filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        if filled.second != second || filled.plain.is_empty() {
            let token = token();
            *filled = Filled {
                second,
                plain: [&self.before, token.as_str(), &self.after].concat().into(),
                gzip: self.gzip.as_ref().and_then(|gzip| gzip.fill(&token)),
            };
        }
        match &filled.gzip {
            Some(gzip) if accepts_gzip => (gzip.clone(), true),
            _ => (filled.plain.clone(), false),
        }
    }
}
