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
use crate::sites::header_templates;
use crate::sites::page_response::Reply;

/// What a page takes in memory beside its bytes.
const OVERHEAD_BYTES: usize = 2_048;

/// A page with a gap.
pub(crate) struct Ready {
    /// The form it was made of: of a later one it is no page.
    open: Arc<OpenForm>,
    before: String,
    after: String,
    headers: HeaderMap,
    /// The same as the quick lane writes them: not one of them depends on when or to whom the page is sent.
    lines: Vec<u8>,
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
        Self {
            open,
            before: before.to_owned(),
            after: after.to_owned(),
            lines: header_templates::lines(&headers),
            headers,
            filled: Mutex::default(),
        }
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
        OVERHEAD_BYTES + self.lines.len() + 3 * (self.before.len() + self.after.len())
    }

    /// Its headers, each in a line of HTTP/1.1.
    pub(crate) fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// A page that is sent with this body.
    pub(crate) fn reply(&self, body: Bytes, is_gzip: bool) -> Reply {
        let mut headers = self.headers.clone();
        if is_gzip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let mut reply = Reply::new(Full::new(body));
        *reply.headers_mut() = headers;
        reply
    }

    /// The page as it is sent in that second, compressed or not.
    pub(crate) fn body(&self, second: i64, is_gzip: bool, token: impl FnOnce() -> String) -> Bytes {
        let mut filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        if filled.second != second || filled.plain.is_empty() {
            let plain = [&self.before, token().as_str(), &self.after].concat();
            *filled = Filled { second, plain: plain.into(), gzip: None };
        }
        if !is_gzip {
            return filled.plain.clone();
        }
        let Filled { plain, gzip, .. } = &mut *filled;
        gzip.get_or_insert_with(|| compressed(plain)).clone()
    }
}

fn compressed(plain: &Bytes) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 2), Compression::default());
    // Writing into memory doesn't fail.
    let _written = encoder.write_all(plain);
    encoder.finish().unwrap_or_default().into()
}
