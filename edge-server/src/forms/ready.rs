//! Form pages that are ready to be sent: made once for a form and a manner, with a gap for the token that says when
//! it was sent. The token changes by the second, and so do these bytes: a page shown a thousand times a second is
//! filled in once.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, header};
use http_body_util::Full;
use store::forms::OpenForm;
use uuid::Uuid;

use super::page::Page;
use crate::replies::Reply;

/// What a page takes in memory beside its bytes.
const OVERHEAD_BYTES: usize = 2_048;

/// A page with a gap.
pub(crate) struct Ready {
    /// The form it was made of: of a later one it is no page.
    open: Arc<OpenForm>,
    before: String,
    after: String,
    headers: HeaderMap,
    filled: Mutex<Filled>,
}

/// What was sent last.
#[derive(Default)]
struct Filled {
    second: i64,
    plain: Bytes,
    gzip: Option<Bytes>,
}

impl Ready {
    /// The page, whose token is `gap` so far.
    pub(crate) fn new(open: Arc<OpenForm>, page: Page, gap: &str) -> Self {
        let Page { html, mut headers } = page;
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding, accept-language"));
        let (before, after) = html.split_once(gap).unwrap_or((&html, ""));
        Self { open, before: before.to_owned(), after: after.to_owned(), headers, filled: Mutex::default() }
    }

    /// Whether it is the page of just this form.
    pub(crate) fn is_of(&self, open: &Arc<OpenForm>) -> bool {
        Arc::ptr_eq(&self.open, open)
    }

    /// The form it shows.
    pub(crate) fn form_id(&self) -> Uuid {
        self.open.form.id
    }

    /// What it weighs in memory.
    pub(crate) fn weight(&self) -> usize {
        OVERHEAD_BYTES + 3 * (self.before.len() + self.after.len())
    }

    /// The page as it is sent in that second, compressed if the visitor takes that.
    pub(crate) fn reply(&self, second: i64, takes_gzip: bool, token: impl FnOnce() -> String) -> Reply {
        let mut headers = self.headers.clone();
        let mut filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        if filled.second != second || filled.plain.is_empty() {
            let plain = [&self.before, token().as_str(), &self.after].concat();
            *filled = Filled { second, plain: plain.into(), gzip: None };
        }
        let body = if takes_gzip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            let Filled { plain, gzip, .. } = &mut *filled;
            gzip.get_or_insert_with(|| compressed(plain)).clone()
        } else {
            filled.plain.clone()
        };
        drop(filled);
        let mut reply = Reply::new(Full::new(body));
        *reply.headers_mut() = headers;
        reply
    }
}

fn compressed(plain: &Bytes) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 2), Compression::default());
    // Writing into memory doesn't fail.
    let _written = encoder.write_all(plain);
    encoder.finish().unwrap_or_default().into()
}
