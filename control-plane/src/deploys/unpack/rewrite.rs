//! Rewrites the references of one document or style sheet of a site.

use std::collections::BTreeSet;

use domain::deploys::html::{self, RewriteError, Rewritten};
use domain::deploys::links::{Linked, Links, Use};
use domain::deploys::{CSS_BYTES_MAX, css};
use domain::static_sites::reasons::Reason;

use super::charset::decode;

/// Upper bound of reported missing paths.
pub(super) const MAX_MISSING: usize = 1_000;

/// A style sheet after its references were resolved.
#[derive(Debug)]
pub(super) struct RewrittenSheet {
    /// The new text; `None` if the sheet stays as it is.
    pub(super) text: Option<String>,
    /// Paths that it refers to and the site lacks.
    pub(super) missing: BTreeSet<String>,
}

/// Rewrites a style sheet, to a text of at most `max_bytes`.
pub(super) fn rewrite_sheet(path: &str, bytes: &[u8], links: &Links, max_bytes: u64) -> RewrittenSheet {
    let base = Links::base(path, None).unwrap_or_default();
    let mut missing = BTreeSet::new();
    let link = |reference: &str| match links.link(&base, reference, Use::Embedded) {
        Linked::Unchanged => None,
        Linked::Replaced(to) => Some(to),
        Linked::Missing(path) => {
            if missing.len() < MAX_MISSING {
                missing.insert(path);
            }
            None
        }
    };
    let max_bytes = CSS_BYTES_MAX.min(usize::try_from(max_bytes).unwrap_or(usize::MAX));
    let text = std::str::from_utf8(bytes).ok();
    // A sheet that would become too large is served unchanged: its references work by path too.
    let text = text.and_then(|text| css::rewrite(text, max_bytes, link).ok()).flatten();
    RewrittenSheet { text, missing }
}

/// Rewrites a document. Returns the reason if it can be no page.
pub(super) fn rewrite_html(path: &str, bytes: &[u8], links: &Links) -> Result<Rewritten, Reason> {
    match html::rewrite(path, &decode(bytes), links) {
        // The database stores no NUL in a text.
        Ok(Rewritten { html, title, .. }) if html.contains('\0') || title.contains('\0') => {
            Err(Reason::Unsupported)
        }
        Ok(rewritten) => Ok(rewritten),
        Err(RewriteError::TooLarge) => Err(Reason::TooLarge),
        Err(RewriteError::Unreadable(_)) => Err(Reason::Unsupported),
    }
}
