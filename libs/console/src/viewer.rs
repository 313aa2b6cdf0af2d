//! The person at a page: session cookie, request id, theme and query. The console never reads the session; it passes the
//! cookie on to the API.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts};
use contract::edge;
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName, header};
use web::RequestId;

/// Headers of the page's request that a call of the API passes on: who calls, from where, and in which trace. The API
/// checks `Origin` on writes.
const PASSED_ON: [HeaderName; 7] = [
    header::COOKIE,
    header::ORIGIN,
    header::USER_AGENT,
    HeaderName::from_static(edge::TOKEN),
    HeaderName::from_static(edge::CLIENT_IP),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];
/// The cookie with the chosen theme.
pub(crate) const THEME_COOKIE: &str = "console-theme";

/// The colours of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    System,
    Light,
    Dark,
}

impl Theme {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// Unknown names are [`Theme::System`].
    pub(crate) fn parse(name: &str) -> Self {
        match name {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::System,
        }
    }
}

/// The person at a page.
#[derive(Debug, Clone)]
pub(crate) struct Viewer(Arc<Parts>);

impl<S: Send + Sync> FromRequestParts<S> for Viewer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(Arc::new(parts.clone())))
    }
}

impl Viewer {
    /// Adds the headers of a call.
    pub(crate) fn pass_on(&self, headers: &mut HeaderMap) {
        for name in &PASSED_ON {
            for value in self.0.headers.get_all(name) {
                headers.append(name, value.clone());
            }
        }
    }

    /// Adds the extensions of a call.
    pub(crate) fn extend(&self, extensions: &mut Extensions) {
        if let Some(id) = self.0.extensions.get::<RequestId>() {
            extensions.insert(id.clone());
        }
        if let Some(connection) = self.0.extensions.get::<ConnectInfo<SocketAddr>>() {
            extensions.insert(*connection);
        }
    }

    pub(crate) fn request_id(&self) -> &str {
        self.0.extensions.get::<RequestId>().map_or("", |id| &id.0)
    }

    /// Returns the path and query of the page.
    pub(crate) fn path_and_query(&self) -> &str {
        self.0.uri.path_and_query().map_or("/console", |path| path.as_str())
    }

    pub(crate) fn path(&self) -> &str {
        self.0.uri.path()
    }

    /// Returns the page that the viewer sees: this one, or the one whose form was posted.
    pub(crate) fn page(&self) -> &str {
        if self.0.method.is_safe() {
            return self.path_and_query();
        }
        let referrer = self.header(header::REFERER).and_then(|address| address.split_once("://"));
        let path = referrer.and_then(|(_, rest)| Some(&rest[rest.find('/')?..]));
        path.filter(|path| path.starts_with("/console")).unwrap_or("/console")
    }

    /// Returns the value of a header, if it is text.
    pub(crate) fn header(&self, name: impl http::header::AsHeaderName) -> Option<&str> {
        self.0.headers.get(name)?.to_str().ok()
    }

    /// Returns the value of a cookie.
    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let values = self.0.headers.get_all(header::COOKIE).iter();
        let mut pairs = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    pub(crate) fn theme(&self) -> Theme {
        Theme::parse(self.cookie(THEME_COOKIE).unwrap_or_default())
    }
}
