//! The page behind a link that resumes a run. It holds nothing that an owner or visitor chose.

use std::sync::LazyLock;

use axum::response::{Html, IntoResponse, Response};
use base64::prelude::{BASE64_STANDARD, Engine};
use http::{HeaderValue, StatusCode, header};
use minijinja::{Environment, context};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("../../../../templates/style.css");
const NAME: &str = "resume.html";

/// What the page shows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Page<'a> {
    /// A button that resumes the run.
    Button,
    /// The run goes on.
    Resumed,
    /// Why nothing was changed.
    Refused(&'a str),
}

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    for (name, source) in [
        ("frame.html", include_str!("../../../../templates/frame.html")),
        (NAME, include_str!("../../../../templates/resume.html")),
    ] {
        if let Err(error) = environment.add_template(name, source) {
            tracing::error!(%error, name, "failed to parse a template");
        }
    }
    environment.add_global("style", minijinja::Value::from_safe_string(STYLE.to_owned()));
    environment
});

/// Forbids everything but the inline style sheet, by its hash, and the form.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let style = BASE64_STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
});

/// Renders the page. Its URL is a secret, so it sends no `Referer`.
pub(super) fn page(status: StatusCode, page: Page<'_>) -> Response {
    let context = match page {
        Page::Button => context! { title => "Confirm to continue", has_button => true,
        text => "An automation waits for your confirmation. Nothing happens until you press the button." },
        Page::Resumed => {
            context! { title => "Confirmed", text => "Thank you. The automation goes on; you can close this page." }
        }
        Page::Refused(text) => context! { title => "This link can't be used", text => text },
    };
    let rendered = TEMPLATES.get_template(NAME).and_then(|template| template.render(context));
    let html = match rendered {
        Ok(html) => html,
        Err(error) => {
            tracing::error!(%error, "failed to render a page");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    let mut response = (status, Html(html)).into_response();
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&POLICY) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in [
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
