//! The owner of automations: an account on the plan `scale`, and its calls.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{Client, Response, System, until};
use http::Method;
use serde_json::{Value, json};

use crate::PROGRAM;

/// An account that makes pages, forms and automations.
#[derive(Clone)]
pub(crate) struct Owner {
    pub(super) client: Client,
    base: String,
}

impl Owner {
    pub(crate) async fn new(system: &System) -> Result<Self> {
        let base = system.file.base_url.clone();
        let mut client = system.client();
        let trial = client.retry_until_ok(Method::POST, &format!("{base}/api/trial"), &Value::Null).await?;
        client.key = trial["key"].as_str().map(str::to_owned);
        let owner = Self { client, base };
        let account = owner.get("account").await?;
        let id = account["id"].as_str().context("no id")?;
        let mut admin = Command::new(PROGRAM);
        let done =
            admin.args(["admin", "--dir"]).arg(system.folder()).args(["plan", id, "scale"]).output()?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        // Services cache an authenticated key for up to a second.
        until("the new plan to take effect", async || {
            (owner.get("account").await.ok()?["_meta"]["plan"] == "scale").then_some(())
        })
        .await?;
        Ok(owner)
    }

    fn url(&self, path: &str) -> String {
        format!("{}/api/{path}", self.base)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.client.retry_until_ok(Method::POST, &self.url(path), body).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Result<Value> {
        self.client.retry_until_ok(Method::PUT, &self.url(path), body).await
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value> {
        let answer = self.client.get(&self.url(path)).await?;
        ensure!(answer.status.is_success(), "GET {path}: {} {}", answer.status, answer.text());
        Ok(answer.json())
    }

    /// Creates a page that shows its entries. Returns it as the API does.
    pub(crate) async fn page(&self, slug: &str, entry_template: &str) -> Result<Value> {
        let page = json!({"slug": slug, "title": "Entries", "html": "<!-- service:entries -->",
                          "entryTemplate": entry_template});
        self.post("pages", &page).await
    }

    /// The data of a page's entries, oldest first.
    pub(super) async fn entries(&self, page: &Value) -> Result<Vec<Value>> {
        let listed = self.get(&format!("pages/{}/entries", id_of(page)?)).await?;
        let entries = listed["entries"].as_array().context("no entries")?;
        Ok(entries.iter().rev().map(|entry| entry["data"].clone()).collect())
    }

    /// Returns the pages with a slug.
    pub(super) async fn pages_with(&self, slug: &str) -> Result<Vec<Value>> {
        let listed = self.get("pages?limit=100").await?;
        let pages = listed["pages"].as_array().context("no pages")?;
        Ok(pages.iter().filter(|page| page["slug"] == slug).cloned().collect())
    }

    /// Creates a form with fields given as `(name, type)`.
    pub(crate) async fn form(&self, name: &str, fields: &[(&str, &str)]) -> Result<Value> {
        let fields: Vec<Value> =
            fields.iter().map(|(name, kind)| json!({"name": name, "label": name, "type": kind})).collect();
        self.post("forms", &json!({"name": name, "fields": fields})).await
    }

    /// Submits a form as a visitor.
    pub(crate) async fn submit(&self, form: &Value, answers: &Value) -> Result<()> {
        let url = form["submitUrl"].as_str().context("no submitUrl")?;
        let accepted = self.visitor().retry_until_ok(Method::POST, url, answers).await?;
        ensure!(accepted["success"] == true, "{accepted}");
        Ok(())
    }

    /// The number of submissions of a form.
    pub(super) async fn submissions(&self, form: &Value) -> Result<usize> {
        let id = form["formId"].as_str().context("no formId")?;
        let listed = self.get(&format!("forms/{id}/submissions?limit=100")).await?;
        Ok(listed["submissions"].as_array().context("no submissions")?.len())
    }

    /// Sends a request without the owner's key. An empty body is sent as none.
    pub(super) async fn call(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Result<Response> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let json = [("content-type", "application/json")];
        let headers = if body.is_empty() { headers.to_vec() } else { [&json, headers].concat() };
        self.visitor().send(method, url, &headers, body.into()).await
    }

    /// A client without a key.
    pub(super) fn visitor(&self) -> Client {
        let mut visitor = self.client.clone();
        visitor.key = None;
        visitor
    }
}

/// The id of a resource.
pub(super) fn id_of(resource: &Value) -> Result<&str> {
    resource["id"].as_str().with_context(|| format!("no id in {resource}"))
}
