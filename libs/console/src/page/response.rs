//! Renders a page, or the part of it that the script asks for.

use axum::response::{Html, IntoResponse, Response};
use http::{Extensions, HeaderMap, HeaderValue, StatusCode, Version, header};
use serde::Serialize;
use serde_json::{Map, Value, json};
use web::Uncompressed;

use super::page_part;
use crate::api_client::{Answer, Refusal};
use crate::flash::Flash;
use crate::form_submission::FormSubmission;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// The entry of the navigation that is current.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Sites,
    Forms,
    Analytics,
    Webhooks,
    Automations,
    Keys,
    Account,
    /// None of them.
    Other,
}

impl Section {
    fn as_str(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Sites => "sites",
            Self::Forms => "forms",
            Self::Analytics => "analytics",
            Self::Webhooks => "webhooks",
            Self::Automations => "automations",
            Self::Keys => "keys",
            Self::Account => "account",
            Self::Other => "",
        }
    }
}

/// A page under construction.
#[derive(Debug)]
pub(crate) struct Page {
    template: &'static str,
    section: Section,
    status: StatusCode,
    needs_sign_in: bool,
    context: Map<String, Value>,
}

impl Page {
    pub(crate) fn new(section: Section, template: &'static str) -> Self {
        Self { template, section, status: StatusCode::OK, needs_sign_in: false, context: Map::new() }
    }

    /// The page that says why something can't be shown.
    pub(crate) fn refused(refusal: &Refusal) -> Self {
        Self::new(Section::Other, "refused.html").main("answer", &Err(refusal.clone()))
    }

    /// Adds a value to the context.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Serialize) -> Self {
        self.context.insert(name.to_owned(), json!(value));
        self
    }

    /// Adds the answer that a panel shows: as `value`, or as `refusal`. A refused panel leaves the rest of the page as it is.
    #[must_use]
    pub(crate) fn panel(mut self, name: &str, answer: &Answer) -> Self {
        let panel = match answer {
            Ok(value) => json!({ "value": value }),
            Err(refusal) => {
                self.needs_sign_in |= refusal.is_unauthenticated();
                json!({ "refusal": refusal })
            }
        };
        self.context.insert(name.to_owned(), panel);
        self
    }

    /// As [`Self::panel`], for the answer that the page is about: if it was refused, the page has its status.
    #[must_use]
    pub(crate) fn main(mut self, name: &str, answer: &Answer) -> Self {
        if let Err(refusal) = answer {
            self.status = refusal.status();
        }
        self.panel(name, answer)
    }

    #[must_use]
    pub(crate) fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Shows why what was posted was refused, with the status of the refusal.
    #[must_use]
    pub(crate) fn problem(self, refusal: &Refusal) -> Self {
        self.status(refusal.status()).with("problem", refusal)
    }

    /// Keeps what was typed.
    #[must_use]
    pub(crate) fn keep(self, form: &FormSubmission) -> Self {
        self.with("kept", form.kept())
    }

    /// Renders the page for the viewer of this account. Without a session, leads to the sign-in page.
    pub(crate) fn respond(self, console: &Console, viewer: &Viewer, account: &Answer) -> Response {
        let mut page = self.panel("account", account);
        if page.needs_sign_in {
            return sign_in(viewer);
        }
        let flash = Flash::of(viewer);
        let zone = account.as_ref().ok().and_then(|account| account["timezone"].as_str()).unwrap_or("UTC");
        let query: Vec<_> =
            UrlQuery::parse(viewer.path_and_query().split_once('?').map_or("", |(_, query)| query))
                .with_prefix("")
                .map(|(name, value)| json!([name, value]))
                .collect();
        let context = [
            ("section", json!(page.section.as_str())),
            ("theme", json!(viewer.theme().as_str())),
            ("here", json!(viewer.path_and_query())),
            ("path", json!(viewer.path())),
            ("query", json!(query)),
            ("flash", json!(flash.map(Flash::text))),
            ("now", json!(console.clock.now())),
            ("zone", json!(zone)),
            ("style", json!(console.assets.static_files.style.path)),
            ("script", json!(console.assets.static_files.script.path)),
            ("favicon", json!(console.assets.static_files.icon.path)),
            ("base", json!(console.assets.base)),
            ("idempotency_key", json!(console.new_idempotency_key())),
        ];
        page.context.extend(context.map(|(name, value)| (name.to_owned(), value)));
        let context = Value::Object(page.context);
        let requested = page_part::requested(viewer);
        let html = match console.assets.templates.render(page.template, &context, requested) {
            Ok(html) => html,
            Err(error) => {
                tracing::error!(%error, template = page.template, "failed to render a page");
                return (StatusCode::INTERNAL_SERVER_ERROR, "This page can't be shown.\n").into_response();
            }
        };
        // A part may be polled. Without forms it stays the same until its content changes.
        let part = requested.filter(|_| page.status.is_success()).map(|_| html.clone());
        let mut response = (page.status, Html(html)).into_response();
        if let Some(part) = part {
            response = page_part::with_entity_tag(viewer, response, &part);
        }
        let headers = response.headers_mut();
        console.assets.page_headers.add_to(headers);
        headers.insert(header::VARY, HeaderValue::from_static("x-part"));
        if flash.is_some() {
            headers.append(header::SET_COOKIE, Flash::clear(console.is_secure()));
        }
        response
    }
}

/// Completes an answer that the script polls: it has an entity tag, and the headers of a page.
pub(crate) fn answer_part(console: &Console, viewer: &Viewer, response: Response, content: &str) -> Response {
    let mut response = page_part::with_entity_tag(viewer, response, content);
    console.assets.page_headers.add_to(response.headers_mut());
    response
}

/// Whether an answer of these extensions may be compressed: one with a new secret must not share a page with other text, or
/// its length would tell of it.
pub(crate) fn is_compressible(_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions) -> bool {
    extensions.get::<Uncompressed>().is_none()
}

/// Redirects to a path of the console, after a write with a message.
pub(crate) fn redirect(console: &Console, path: &str, flash: Option<Flash>) -> Response {
    let location = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/console"));
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(flash) = flash {
        headers.append(header::SET_COOKIE, flash.set(console.is_secure()));
    }
    response
}

/// Redirects to the sign-in page, which leads back here.
fn sign_in(viewer: &Viewer) -> Response {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("returnTo", viewer.path_and_query())
        .finish();
    let headers =
        [(header::LOCATION, format!("/login?{query}")), (header::CACHE_CONTROL, "no-store".to_owned())];
    (StatusCode::SEE_OTHER, headers).into_response()
}
