//! The pages of the reference: one to begin with, and one for each category. They need no script.

use anyhow::Context;
use base64::prelude::{BASE64_STANDARD, Engine};
use http::HeaderValue;
use minijinja::Environment;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::example::{Example, operations_of};
use super::{curl, facts, fields, schema};
use crate::catalog::{CATEGORIES, Catalog, Location, Operation, Parameter};

const STYLE: &str = include_str!("../../templates/reference/style.css");

/// The parsed templates and the `Content-Security-Policy` of every page.
#[derive(Debug)]
pub(super) struct Templates {
    environment: Environment<'static>,
    policy: HeaderValue,
}

/// A sentence on each category.
fn about(category: &str) -> &'static str {
    match category {
        "trial" => "An account and its key in one call, without signing up.",
        "auth" => "Redirects of a browser to an identity provider.",
        "pages" => {
            "HTML that is live at once: single pages, whole sites, entries, assets and deploys of a zip."
        }
        "forms" => "Questions with a hosted page, an embed and a submit URL.",
        "submissions" => {
            "Answers to forms: from visitors, by the API, with files, searched, exported and erased."
        }
        "webhooks" => "Signed notifications of submissions, with retries and a log.",
        "workflows" => "Presets of forms, ready to use.",
        "keys" => "API keys, restricted by scope, folder, resource and expiry.",
        "account" => "Plan, usage, subdomains and custom domains.",
        "analytics" => "Visits without cookies: metrics, live visitors, sessions, funnels and retention.",
        "folders" => "Groups of pages, forms, analytics sites and automations.",
        "automations" => "Steps that run on a submission, a request or a schedule.",
        "mcp" => "The whole API as tools of a Model Context Protocol client.",
        _ => "The state of the account, help, and this description.",
    }
}

impl Templates {
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut environment = Environment::new();
        for (name, source) in [
            ("frame.html", include_str!("../../templates/reference/frame.html")),
            ("index.html", include_str!("../../templates/reference/index.html")),
            ("category.html", include_str!("../../templates/reference/category.html")),
        ] {
            environment.add_template(name, source).with_context(|| format!("parsing the template {name}"))?;
        }
        environment.add_filter("marked", marked);
        environment.add_global("style", minijinja::Value::from_safe_string(STYLE.to_owned()));
        let style = BASE64_STANDARD.encode(Sha256::digest(STYLE));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
        );
        Ok(Self { environment, policy: HeaderValue::from_str(&policy)? })
    }

    pub(super) fn policy(&self) -> HeaderValue {
        self.policy.clone()
    }

    /// Renders the page of a category; the first page for the empty text.
    ///
    /// # Errors
    /// A template that does not fit what it shows.
    pub(super) fn render(
        &self,
        catalog: &Catalog,
        examples: &[Example],
        base_url: &str,
        category: &str,
    ) -> anyhow::Result<String> {
        let categories = CATEGORIES.map(|name| {
            let count = catalog.operations_of(name).filter(|operation| !operation.is_extension).count();
            json!({ "name": name, "about": about(name), "count": count })
        });
        let operations: Vec<Value> = operations_of(catalog, examples, category)
            .into_iter()
            .map(|(operation, example)| describe(operation, example, base_url))
            .collect();
        let context = json!({
            "base": base_url, "category": category, "about": about(category),
            "categories": categories, "operations": operations,
        });
        let template = if category.is_empty() { "index.html" } else { "category.html" };
        let page = self.environment.get_template(template)?.render(minijinja::value::Serde(&context));
        page.with_context(|| format!("rendering the template {template}"))
    }

    /// Templates of which none can be rendered.
    #[cfg(test)]
    pub(super) fn empty() -> Self {
        Self { environment: Environment::new(), policy: HeaderValue::from_static("") }
    }
}

fn describe(operation: &Operation, example: Option<&Example>, base_url: &str) -> Value {
    let errors: Vec<Value> = facts::errors_of(operation)
        .into_iter()
        .map(|code| json!({ "status": code.status().as_u16(), "code": code.as_str(), "title": code.title() }))
        .collect();
    json!({
        "id": operation.id,
        "method": operation.method.as_str(),
        "path": operation.path,
        "summary": operation.summary,
        "description": operation.description,
        "auth": schema::auth_of(operation),
        "scopes": operation.scopes,
        "is_extension": operation.is_extension,
        "is_deprecated": operation.is_deprecated,
        "parameters": parameters(operation),
        "headers": operation.parameters.iter().filter(|one| one.location == Location::Header).map(|one| &one.name).collect::<Vec<_>>(),
        "body": operation.request_body.as_ref().map(fields::rows),
        "has_open_body": operation.has_open_body(),
        "statuses": operation.success_statuses,
        "answer": operation.response.as_ref().map(fields::rows),
        "errors": errors,
        "limits": facts::limits_of(operation),
        "example": example.map(|example| json!({
            "curl": curl::command(operation, example, base_url),
            "placeholders": example.placeholders,
            "first": example.first,
        })),
    })
}

/// Returns the parameters of the path and the query as lines of a table.
fn parameters(operation: &Operation) -> Vec<fields::FieldRow> {
    let in_url = |one: &&Parameter| one.location != Location::Header;
    operation.parameters.iter().filter(in_url).flat_map(row_of).collect()
}

/// A parameter is a member of an object with this one member.
fn row_of(parameter: &Parameter) -> Vec<fields::FieldRow> {
    let mut schema = parameter.schema.clone();
    let definitions = schema.as_object_mut().and_then(|schema| schema.shift_remove("$defs"));
    let required = if parameter.is_required { json!([parameter.name]) } else { json!([]) };
    fields::rows(&json!({
        "properties": { (parameter.name.clone()): schema },
        "required": required,
        "$defs": definitions.unwrap_or_default(),
    }))
}

/// Escapes a text and shows what stands between backticks as code.
fn marked(text: &str) -> minijinja::Value {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut html = String::with_capacity(escaped.len());
    let mut parts = escaped.split('`').peekable();
    let mut is_code = false;
    while let Some(part) = parts.next() {
        // An opening backtick without a closing one stays as it is.
        match (is_code, parts.peek().is_some()) {
            (true, true) => html += &format!("<code>{part}</code>"),
            (true, false) => html += &format!("`{part}"),
            (false, _) => html += part,
        }
        is_code = !is_code;
    }
    minijinja::Value::from_safe_string(html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_code_is_marked() {
        for (text, html) in [
            ("a < b & `c > d`", "a &lt; b &amp; <code>c &gt; d</code>"),
            ("one ` only", "one ` only"),
            ("`a``b`", "<code>a</code><code>b</code>"),
        ] {
            assert_eq!(marked(text).to_string(), html);
        }
    }
}
