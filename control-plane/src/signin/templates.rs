//! Page templates, and the security headers that every page carries.

use anyhow::Context;
use axum::response::{Html, IntoResponse, Response};
use base64::prelude::{BASE64_STANDARD, Engine};
use http::{HeaderValue, StatusCode, header};
use minijinja::Environment;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("../../templates/style.css");

/// The parsed templates and the `Content-Security-Policy` of every page.
pub struct Templates {
    environment: Environment<'static>,
    policy: HeaderValue,
}

/// A page with a title and one paragraph.
pub(super) struct Notice<'a> {
    pub(super) status: StatusCode,
    pub(super) title: &'a str,
    pub(super) text: &'a str,
    /// The path and the label of a button.
    pub(super) link: Option<(&'a str, &'a str)>,
}

impl Templates {
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut environment = Environment::new();
        for (name, source) in [
            ("frame.html", include_str!("../../templates/frame.html")),
            ("notice.html", include_str!("../../templates/notice.html")),
            ("login.html", include_str!("../../templates/login.html")),
            ("local.html", include_str!("../../templates/local.html")),
            ("claim.html", include_str!("../../templates/claim.html")),
            ("recipient.html", include_str!("../../templates/recipient.html")),
            ("account.html", include_str!("../../templates/account.html")),
        ] {
            environment.add_template(name, source).with_context(|| format!("parsing the template {name}"))?;
        }
        environment.add_global("style", minijinja::Value::from_safe_string(STYLE.to_owned()));
        // Forbids scripts, images and frames, and allows one style sheet: the inline one, by its hash.
        let style = BASE64_STANDARD.encode(Sha256::digest(STYLE));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        );
        Ok(Self { environment, policy: HeaderValue::from_str(&policy)? })
    }

    /// Renders a page that may have a secret URL: it sends no `Referer`.
    pub(super) fn show(&self, status: StatusCode, template: &str, context: &Value) -> Response {
        self.render(status, template, context, "no-referrer")
    }

    /// Renders a page with a form. It sends no `Referer` to other hosts. It can't use `no-referrer`, because browsers
    /// would then post the form with `Origin: null`.
    pub(super) fn show_form(&self, template: &str, context: &Value) -> Response {
        self.render(StatusCode::OK, template, context, "same-origin")
    }

    /// Renders a notice.
    pub(super) fn notice(&self, notice: &Notice<'_>) -> Response {
        let link = notice.link.map(|(path, label)| json!({ "path": path, "label": label }));
        let context = json!({ "title": notice.title, "text": notice.text, "link": link });
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
            .environment
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
                tracing::error!(%error, template, "failed to render a page");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

/// Redirects to another page, without passing this page's URL on.
pub(super) fn redirect(path: &str) -> Response {
    let headers = [
        (header::LOCATION, path),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}
