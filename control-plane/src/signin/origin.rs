//! Whether a page of ours sent a request: what a cookie may do must not be another site's to start.

use axum::extract::FromRequestParts;
use axum::response::Response;
use domain::addresses::Addresses;
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};

use super::pages::Notice;
use crate::App;

/// Whether a request says, as browsers do with every POST, that it comes from a page of this host.
pub fn is_ours(headers: &HeaderMap, addresses: &Addresses) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    origins.next().is_some_and(|origin| origin == addresses.base()) && origins.next().is_none()
}

/// A request from a page of this host. Others are refused.
#[derive(Debug)]
pub(super) struct FromOurPage;

impl FromRequestParts<App> for FromOurPage {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        if is_ours(&parts.headers, &app.addresses) {
            return Ok(Self);
        }
        let base = app.addresses.base();
        let text = format!("Nothing was changed: this request did not come from a page of {base}.");
        let notice = Notice {
            status: StatusCode::FORBIDDEN,
            title: "Not from here",
            text: &text,
            onward: Some(("/account", "Go to your account")),
        };
        Err(app.signin.pages.notice(&notice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_base_urls_own_origin_is_ours() {
        let addresses = Addresses::new("https://app.example.com", "sites.test").unwrap();
        let ours = |origins: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for origin in origins {
                headers.append(header::ORIGIN, (*origin).parse().unwrap());
            }
            is_ours(&headers, &addresses)
        };
        assert!(ours(&["https://app.example.com"]));
        for other in [
            "http://app.example.com",
            "https://app.example.com:8443",
            "https://a.sites.test",
            "null",
            "",
            "https://app.example.com.evil.test",
        ] {
            assert!(!ours(&[other]), "{other}");
        }
        assert!(!ours(&[]) && !ours(&["https://app.example.com", "https://evil.test"]));
    }
}
