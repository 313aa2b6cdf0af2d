//! Where a browser goes after submitting a form.

use http::HeaderValue;
use store::forms::OpenForm;
use url::Url;

use super::pages::page::Presentation;

/// Returns the redirect URL unless the form is embedded, otherwise its thank-you page.
pub(crate) fn location(open: &OpenForm, presentation: Presentation) -> Option<HeaderValue> {
    let url = redirect_target(open).filter(|_| !presentation.is_embedded());
    let thanks = || format!("/f/{}/thanks{}", open.form.id, presentation.query());
    HeaderValue::from_str(&url.map_or_else(thanks, String::from)).ok()
}

/// Returns the form's redirect URL. The scheme was checked when the form was saved, and is checked again here, because a
/// browser would run a `javascript:` URL.
pub(crate) fn redirect_target(open: &OpenForm) -> Option<Url> {
    let url = Url::parse(open.form.redirect_url.as_deref()?).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}
