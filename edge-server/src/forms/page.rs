//! A form, or a word about one, as a page: HTML and the policy it is sent with.

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

use super::languages::{Language, Messages};
use super::view_model::FormModel;
use super::{conditional_css, redirect_target};

/// One for all forms. It stands in the page: nothing is drawn twice.
const STYLE: &str = include_str!("../../static/form.css");

/// How a page is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Presentation {
    pub(crate) language: Language,
    /// The visitor's address names the language; it stays when the form is sent.
    pub(crate) is_asked_for: bool,
    /// In a frame on somebody's page.
    pub(crate) is_embedded: bool,
}

/// What is said instead of a form.
#[derive(Debug)]
pub(crate) struct Notice<'a> {
    pub(crate) title: &'a str,
    pub(crate) message: &'a str,
    /// The form was sent, and this says so.
    pub(crate) is_thanks: bool,
    /// Where the visitor is to go from here.
    pub(crate) redirect_target: Option<&'a str>,
}

/// A page, and what it may do.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) html: String,
    pub(crate) headers: HeaderMap,
}

/// Makes pages.
pub(crate) struct Pages {
    templates: Environment<'static>,
    words: Vec<Messages>,
}

impl Pages {
    /// # Errors
    /// A template or a language can't be read.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let mut templates = Environment::new();
        for (name, source) in [
            ("form.html", include_str!("../../templates/form.html")),
            ("notice.html", include_str!("../../templates/notice.html")),
            ("frame.html", include_str!("../../templates/frame.html")),
        ] {
            templates.add_template(name, source).with_context(|| format!("reading the template {name}"))?;
        }
        let words = Language::ALL.into_iter().map(Messages::read).collect::<anyhow::Result<_>>()?;
        Ok(Self { templates, words })
    }

    /// What is said in a language.
    pub(crate) fn words(&self, language: Language) -> &Messages {
        &self.words[language as usize]
    }

    /// The form, with `token` in its place.
    ///
    /// # Errors
    /// The template's.
    pub(crate) fn form(
        &self,
        open: &OpenForm,
        manner: Presentation,
        sheet: &FormModel<'_>,
        token: &str,
    ) -> Result<Page, minijinja::Error> {
        let form = &open.form;
        let questions: Vec<_> = form.fields.iter().map(|field| sheet.question(field)).collect();
        let rules = conditional_css::rules(&form.fields);
        let context = json!({
            "name": form.name,
            "submit_label": form.submit_label,
            // Without a host: a page shown under another name of ours still posts to where it came from.
            "action": format!("/api/forms/{}/submit", form.id),
            "questions": questions,
            "mistakes": sheet.mistakes(&form.fields),
            "has_required": form.fields.iter().any(|field| field.required && field.kind != FieldType::Hidden),
            "has_files": form.fields.iter().any(|field| field.kind == FieldType::File),
            "honeypot": form.spam.honeypot,
            "challenge": form.spam.proof_of_work.then(|| format!("/api/forms/{}/challenge", form.id)),
            "token": token,
        });
        let target =
            if redirect_target(open).is_some() && !manner.is_embedded { " http: https:" } else { "" };
        self.render("form.html", manner, context, &rules, target)
    }

    /// A word about a form.
    ///
    /// # Errors
    /// The template's.
    pub(crate) fn notice(&self, manner: Presentation, notice: &Notice<'_>) -> Result<Page, minijinja::Error> {
        let context = json!({
            "title": notice.title,
            "message": notice.message,
            "is_thanks": notice.is_thanks,
            "onward": notice.redirect_target,
        });
        self.render("notice.html", manner, context, "", "")
    }

    fn render(
        &self,
        template: &str,
        manner: Presentation,
        mut context: Value,
        rules: &str,
        target: &str,
    ) -> Result<Page, minijinja::Error> {
        let words = self.words(manner.language);
        let around = json!({
            "lang": manner.language.code(),
            "direction": words.direction,
            "t": words.page,
            "style": STYLE,
            "conditional_css": rules,
            "asked_language": manner.is_asked_for,
            "embedded": manner.is_embedded,
        });
        if let (Value::Object(context), Value::Object(around)) = (&mut context, around) {
            context.extend(around);
        }
        let html = self.templates.get_template(template)?.render(minijinja::value::Serde(&context))?;
        Ok(Page { html, headers: headers(rules, target) })
    }
}

impl Page {
    /// The page as an answer.
    pub(crate) fn answer(self, status: StatusCode) -> Response {
        let mut response = Response::new(Body::from(self.html));
        *response.status_mut() = status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// Only our own script, and the styles that stand in the page; nothing from elsewhere. Any page may show it in a
/// frame. Browsers hold `form-action` against redirects too, so a form that sends its visitors on may `target` more.
fn headers(rules: &str, target: &str) -> HeaderMap {
    let mut styles = hash(STYLE);
    if !rules.is_empty() {
        styles = format!("{styles} {}", hash(rules));
    }
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src {styles}; img-src 'self' data:; connect-src 'self'; worker-src 'self'; \
         form-action 'self'{target}; base-uri 'none'; frame-ancestors *"
    );
    let text = HeaderValue::from_static;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, text("text/html; charset=utf-8"));
    // Words and hexadecimal digits are always a header value.
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
