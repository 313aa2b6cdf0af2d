//! The cached page of an untouched form.
//!
//! A page contains a token with the time it was shown, so it changes every second. The page is rendered once per form and
//! presentation, with a gap for the token, and filled in and compressed once per second, however often it is shown.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderValue, header};
use store::forms::OpenForm;
use uuid::Uuid;

use super::page::Page;
use crate::sites::header_templates::HeaderTemplate;
use crate::sites::page_response::PageResponse;

/// Memory of a page beside its bytes.
const OVERHEAD_BYTES: usize = 2_048;

static GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// A rendered page with a gap for the token.
pub(crate) struct CachedFormPage {
    /// The form that was rendered; the page is not valid for a later version.
    open: Arc<OpenForm>,
    before: String,
    after: String,
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
        Self {
            open,
            before: before.to_owned(),
            after: after.to_owned(),
            template: HeaderTemplate::new(headers),
            filled: Mutex::default(),
        }
    }

    /// Returns whether the page was rendered from this version of the form.
    pub(crate) fn is_of(&self, open: &Arc<OpenForm>) -> bool {
        Arc::ptr_eq(&self.open, open)
    }

    pub(super) fn form_id(&self) -> Uuid {
        self.open.form.id
    }

    /// Returns the memory of the page in bytes.
    pub(crate) fn weight(&self) -> usize {
        OVERHEAD_BYTES + self.template.lines.len() + 3 * (self.before.len() + self.after.len())
    }

    /// Returns the response with a filled-in body.
    pub(crate) fn response<'a>(&'a self, body: &'a Bytes, is_gzip: bool) -> PageResponse<'a> {
        PageResponse::new(&self.template, is_gzip.then_some(&GZIP), body)
    }

    /// Returns the body for a second, compressed or not.
    pub(super) fn body(&self, second: i64, is_gzip: bool, token: impl FnOnce() -> String) -> Bytes {
        let mut filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        if filled.second != second || filled.plain.is_empty() {
            let plain = [&self.before, token().as_str(), &self.after].concat();
            *filled = Filled { second, plain: plain.into(), gzip: None };
        }
        if !is_gzip {
            return filled.plain.clone();
        }
        let Filled { plain, gzip, .. } = &mut *filled;
        gzip.get_or_insert_with(|| compress(plain)).clone()
    }
}

fn compress(plain: &Bytes) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 2), Compression::default());
    // Writing into memory does not fail.
    let _written = encoder.write_all(plain);
    encoder.finish().unwrap_or_default().into()
}
