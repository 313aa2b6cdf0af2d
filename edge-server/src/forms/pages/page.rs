//! Renders the HTML of forms and notices, and their headers.

use anyhow::Context;
use axum::body::Body;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::fields::FieldType;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use minijinja::Environment;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::forms::OpenForm;

use super::conditional_css;
use super::languages::{Language, Messages};
use super::look::Look;
pub(crate) use super::presentation::Presentation;
use super::presentation::{Frame, Theme};
use super::view_model::FormModel;
use crate::forms::redirect::redirect_target;
use crate::sites::pages::encoded::gzip;
use crate::sites::pages::encodings::{Accepted, GZIP_INDEX};

/// The style of all forms. It is inlined, so that the page is rendered once.
const STYLE: &str = concat!(
    include_str!("../../../static/form.css"),
    "@media (prefers-color-scheme: dark) { :root:not([data-theme]) {\n",
    include_str!("../../../static/form.dark.css"),
    "} }\n:root[data-theme=dark] {\n",
    include_str!("../../../static/form.dark.css"),
    "}\n",
);

/// A page with one sentence instead of a form.
#[derive(Debug)]
pub(crate) struct Notice<'a> {
    pub(crate) title: &'a str,
    pub(crate) message: &'a str,
    /// Whether this confirms a submission.
    pub(crate) is_thanks: bool,
    /// A link to continue at.
    pub(crate) redirect_url: Option<&'a str>,
}

/// A rendered page and its headers.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) html: String,
    pub(crate) headers: HeaderMap,
}

/// The templates, and the messages of every language.
pub(crate) struct FormTemplates {
    templates: Environment<'static>,
    messages: Vec<Messages>,
}

impl FormTemplates {
    /// # Errors
    /// A template or a language file is invalid.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let mut templates = Environment::new();
        for (name, source) in [
            ("form.html", include_str!("../../../templates/form.html")),
            ("notice.html", include_str!("../../../templates/notice.html")),
            ("frame.html", include_str!("../../../templates/frame.html")),
            ("confirm.html", include_str!("../../../templates/confirm.html")),
        ] {
            templates.add_template(name, source).with_context(|| format!("reading the template {name}"))?;
        }
        let messages = Language::ALL.into_iter().map(Messages::read).collect::<anyhow::Result<_>>()?;
        Ok(Self { templates, messages })
    }

    pub(crate) fn messages(&self, language: Language) -> &Messages {
        &self.messages[language as usize]
    }

    /// Renders a form; without a token as a draft, which looks the same and can't be submitted.
    pub(crate) fn form(
        &self,
        open: &OpenForm,
        presentation: Presentation,
        model: &FormModel<'_>,
        look: &Look,
        token: Option<&str>,
    ) -> Result<Page, minijinja::Error> {
        let (form, is_draft) = (&open.form, token.is_none());
        let fields: Vec<_> = form.fields.iter().map(|field| model.field(field)).collect();
        let css = conditional_css::rules(&form.fields) + &look.css;
        let context = json!({
            "name": form.name,
            "submit_label": form.submit_label,
            // Without a host, so that a page shown under another name of the edge posts back to the same host.
            "action": format!("/api/forms/{}/submit", form.id),
            "fields": fields,
            "errors": model.errors(&form.fields),
            "has_required": form.fields.iter().any(|field| field.required && field.kind != FieldType::Hidden),
            "has_files": form.fields.iter().any(|field| field.kind == FieldType::File),
            "honeypot": form.spam.honeypot,
            "challenge": form.spam.proof_of_work.then(|| format!("/api/forms/{}/challenge", form.id)),
            "token": token,
        });
        let policy = Policy {
            css: &css,
            logo_url: look.logo_url.as_deref(),
            targets: targets(open, presentation),
            is_draft,
        };
        self.render("form.html", presentation, context, policy)
    }

    /// Renders the page that asks a visitor to confirm a submission.
    pub(crate) fn confirmation(
        &self,
        open: &OpenForm,
        presentation: Presentation,
        look: &Look,
        token: &str,
    ) -> Result<Page, minijinja::Error> {
        let context = json!({
            "action": format!("/api/forms/{}/confirm", open.form.id),
            "token": token,
        });
        let policy = Policy {
            css: &look.css,
            logo_url: look.logo_url.as_deref(),
            targets: targets(open, presentation),
            is_draft: false,
        };
        self.render("confirm.html", presentation, context, policy)
    }

    /// Renders a notice, about a form or in place of a draft.
    pub(crate) fn notice(
        &self,
        presentation: Presentation,
        notice: &Notice<'_>,
        look: &Look,
        is_draft: bool,
    ) -> Result<Page, minijinja::Error> {
        let context = json!({
            "title": notice.title,
            "message": notice.message,
            "is_thanks": notice.is_thanks,
            "redirect_url": notice.redirect_url,
        });
        let policy = Policy { css: &look.css, logo_url: look.logo_url.as_deref(), targets: "", is_draft };
        self.render("notice.html", presentation, context, policy)
    }

    fn render(
        &self,
        template: &str,
        presentation: Presentation,
        mut context: Value,
        policy: Policy<'_>,
    ) -> Result<Page, minijinja::Error> {
        let messages = self.messages(presentation.language);
        let frame = json!({
            "lang": presentation.language.code(),
            "direction": messages.direction,
            "t": messages.page,
            "style": STYLE,
            "own_css": policy.css,
            "logo_url": policy.logo_url,
            "explicit_language": presentation.is_language_explicit,
            "embedded": presentation.is_embedded(),
            "popup": presentation.frame == Frame::Popup,
            "solid": presentation.is_solid,
            "theme": presentation.theme.map(Theme::as_str),
            "look": presentation.look(),
            "is_draft": policy.is_draft,
        });
        if let (Value::Object(context), Value::Object(frame)) = (&mut context, frame) {
            context.extend(frame);
        }
        let html = self.templates.get_template(template)?.render(minijinja::value::Serde(&context))?;
        Ok(Page { html, headers: headers(&policy) })
    }
}

impl Page {
    /// Returns the response, compressed if the client accepts it. That takes milliseconds for a large page.
    pub(crate) fn into_encoded_response(mut self, accepted: Accepted) -> Response {
        self.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding, accept-language"));
        let gzip = accepted.contains(GZIP_INDEX).then(|| gzip(self.html.as_bytes()).ok()).flatten();
        let Some(gzip) = gzip else { return self.into_response(StatusCode::OK) };
        self.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let mut response = Response::new(Body::from(gzip));
        *response.headers_mut() = self.headers;
        response
    }

    pub(crate) fn into_response(self, status: StatusCode) -> Response {
        let mut response = Response::new(Body::from(self.html));
        *response.status_mut() = status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// What a page's content security policy depends on.
struct Policy<'a> {
    /// The page's own style rules.
    css: &'a str,
    logo_url: Option<&'a str>,
    /// Where the form may lead beside the edge itself.
    targets: &'static str,
    /// Whether the page shows a draft: it is for the console's frame, and nothing in it runs or is sent.
    is_draft: bool,
}

/// Browsers apply `form-action` to redirects too, so a form with a redirect URL needs any target.
fn targets(open: &OpenForm, presentation: Presentation) -> &'static str {
    if redirect_target(open).is_some() && !presentation.is_embedded() { " http: https:" } else { "" }
}

/// The policy allows the edge's own scripts, the inlined styles, the owner's logo, and framing by any page. That of a draft
/// allows no script, and framing by pages of this host alone.
fn headers(Policy { css, logo_url, targets, is_draft }: &Policy<'_>) -> HeaderMap {
    let mut styles = hash(STYLE);
    if !css.is_empty() {
        styles = format!("{styles} {}", hash(css));
    }
    let logo = logo_url.map_or_else(String::new, |url| format!(" {url}"));
    let shown = format!("style-src {styles}; img-src 'self' data:{logo}; base-uri 'none'");
    let policy = if *is_draft {
        format!("default-src 'none'; {shown}; form-action 'none'; frame-ancestors 'self'; sandbox")
    } else {
        let scripts = "script-src 'self'; connect-src 'self'; worker-src 'self'";
        format!("default-src 'none'; {scripts}; {shown}; form-action 'self'{targets}; frame-ancestors *")
    };
    let text = HeaderValue::from_static;
    let mut headers = HeaderMap::new();
    if *is_draft {
        headers.insert(header::X_FRAME_OPTIONS, text("SAMEORIGIN"));
        headers.insert(header::REFERRER_POLICY, text("no-referrer"));
    }
    headers.insert(header::CONTENT_TYPE, text("text/html; charset=utf-8"));
    // Words and base64 digits are a valid header value.
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_str(&policy).unwrap_or(text("default-src 'none'")),
    );
    headers.insert(header::CACHE_CONTROL, text("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, text("nosniff"));
    headers
}

fn hash(style: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(style)))
}
