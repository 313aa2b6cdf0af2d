//! Checks the `Origin` header, so that another site's page can't act with a visitor's cookie.

use axum::extract::FromRequestParts;
use axum::response::Response;
use domain::addresses::Addresses;
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};

use super::templates::Notice;
use crate::App;

/// Whether the request comes from a page of this host. Browsers send `Origin` with every POST.
pub(crate) fn is_same_origin(headers: &HeaderMap, addresses: &Addresses) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    origins.next().is_some_and(|origin| origin == addresses.base()) && origins.next().is_none()
}

/// An extractor that rejects requests from pages of other hosts with 403.
#[derive(Debug)]
pub(super) struct SameOrigin;

impl FromRequestParts<App> for SameOrigin {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        if is_same_origin(&parts.headers, &app.addresses) {
            return Ok(Self);
        }
        let base = app.addresses.base();
        let text = format!("Nothing was changed: this request did not come from a page of {base}.");
        let notice = Notice {
            status: StatusCode::FORBIDDEN,
            title: "Not from here",
            text: &text,
            link: Some(("/account", "Go to your account")),
        };
        Err(app.signin.templates.notice(&notice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_the_origin_of_the_base_url() {
        let addresses = Addresses::new("https://app.example.com", "sites.test").unwrap();
        let accepts = |origins: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for origin in origins {
                headers.append(header::ORIGIN, (*origin).parse().unwrap());
            }
            is_same_origin(&headers, &addresses)
        };
        assert!(accepts(&["https://app.example.com"]));
        for other in [
            "http://app.example.com",
            "https://app.example.com:8443",
            "https://a.sites.test",
            "null",
            "",
            "https://app.example.com.evil.test",
        ] {
            assert!(!accepts(&[other]), "{other}");
        }
        assert!(!accepts(&[]) && !accepts(&["https://app.example.com", "https://evil.test"]));
    }
}
