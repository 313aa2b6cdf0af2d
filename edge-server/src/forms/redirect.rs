//! The redirect URL of a form.

use store::forms::OpenForm;
use url::Url;

/// Returns the form's redirect URL. The scheme was checked when the form was saved, and is checked again here, because a
/// browser would run a `javascript:` URL.
pub(crate) fn redirect_target(open: &OpenForm) -> Option<Url> {
    let url = Url::parse(open.form.redirect_url.as_deref()?).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}
