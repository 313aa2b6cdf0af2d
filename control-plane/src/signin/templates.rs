//! The pages themselves: templates, and the headers that let nothing of theirs out and nothing foreign in.

use anyhow::Context;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use base64::prelude::{BASE64_STANDARD, Engine};
use http::{HeaderValue, StatusCode, header};
use minijinja::Environment;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use web::{Code, Problem};

use crate::App;

const STYLE: &str = include_str!("../../templates/style.css");

/// The templates, read.
pub struct Pages {
    templates: Environment<'static>,
    policy: HeaderValue,
}

/// A page of a few words.
pub(super) struct Notice<'a> {
    pub(super) status: StatusCode,
    pub(super) title: &'a str,
    pub(super) text: &'a str,
    /// Where one may go from here: path and words.
    pub(super) onward: Option<(&'a str, &'a str)>,
}

impl Pages {
    /// # Errors
    /// A template can't be read.
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut templates = Environment::new();
        for (name, source) in [
            ("frame.html", include_str!("../../templates/frame.html")),
            ("notice.html", include_str!("../../templates/notice.html")),
            ("login.html", include_str!("../../templates/login.html")),
            ("local.html", include_str!("../../templates/local.html")),
            ("claim.html", include_str!("../../templates/claim.html")),
            ("recipient.html", include_str!("../../templates/recipient.html")),
            ("account.html", include_str!("../../templates/account.html")),
        ] {
            templates.add_template(name, source).with_context(|| format!("reading the template {name}"))?;
        }
        templates.add_global("style", minijinja::Value::from_safe_string(STYLE.to_owned()));
        // No script, no picture, no frame, and of styles the one that stands in every page, by its hash.
        let style = BASE64_STANDARD.encode(Sha256::digest(STYLE));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        );
        Ok(Self { templates, policy: HeaderValue::from_str(&policy)? })
    }

    /// A page whose address may be a secret: no link tells where it leads from.
    pub(super) fn show(&self, status: StatusCode, template: &str, context: &Value) -> Response {
        self.render(status, template, context, "no-referrer")
    }

    /// A page with a form. It tells no other host its address either; but under `no-referrer` browsers would post
    /// the form with `Origin: null`, as if from anywhere.
    pub(super) fn show_form(&self, template: &str, context: &Value) -> Response {
        self.render(StatusCode::OK, template, context, "same-origin")
    }

    /// A page of a few words.
    pub(super) fn notice(&self, notice: &Notice<'_>) -> Response {
        let onward = notice.onward.map(|(path, words)| json!({ "path": path, "words": words }));
        let context = json!({ "title": notice.title, "text": notice.text, "onward": onward });
        self.show(notice.status, "notice.html", &context)
    }

    fn render(
        &self,
        status: StatusCode,
        template: &str,
        context: &Value,
        referrer: &'static str,
    ) -> Response {
        let page = self
            .templates
            .get_template(template)
            .and_then(|template| template.render(minijinja::value::Serde(context)));
        match page {
            Ok(html) => {
                let mut response = (status, Html(html)).into_response();
                let headers = response.headers_mut();
                headers.insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
                headers.insert(header::REFERRER_POLICY, HeaderValue::from_static(referrer));
                headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
                headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
                headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
                response
            }
            Err(error) => {
                tracing::error!(%error, template, "a page can't be rendered");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

/// On to another page. What stands in this one's address is not passed on.
pub(super) fn go_to(path: &str) -> Response {
    let headers = [
        (header::LOCATION, path),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// Middleware: a browser reads a problem as a page.
pub(super) async fn in_words(State(app): State<App>, request: Request, next: Next) -> Response {
    let accepted = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let is_browser = accepted.is_some_and(|accepted| accepted.contains("text/html"));
    let response = next.run(request).await;
    let Some(problem) = response.extensions().get::<Problem>().filter(|_| is_browser) else {
        return response;
    };
    let code = problem.code();
    let (title, text) = match code {
        Code::Unavailable => {
            ("Back soon", "This page can't be shown right now. Please try again in a moment.")
        }
        Code::Internal => ("Our mistake", "Something went wrong on our side. Please try again in a moment."),
        _ => (code.title(), problem.detail()),
    };
    let mut page = app.signin.pages.notice(&Notice { status: problem.status(), title, text, onward: None });
    if let Some(seconds) = response.headers().get(header::RETRY_AFTER) {
        page.headers_mut().insert(header::RETRY_AFTER, seconds.clone());
    }
    page
}
