//! An account with a form, on the plan `scale`.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{Client, System, until};
use http::Method;
use serde_json::{Value, json};

use crate::PROGRAM;

/// An account with a client and a form.
pub(crate) struct Account {
    pub(crate) client: Client,
    base: String,
    submit_url: String,
}

impl Account {
    pub(crate) async fn new(system: &System) -> Result<Self> {
        let base = system.file.base_url.clone();
        let mut client = system.client();
        let trial = client.retry_until_ok(Method::POST, &format!("{base}/api/trial"), &Value::Null).await?;
        client.key = trial["key"].as_str().map(str::to_owned);
        let account = client.get(&format!("{base}/api/account")).await?.json();
        let id = account["id"].as_str().context("no id")?;
        let mut admin = Command::new(PROGRAM);
        let done =
            admin.args(["admin", "--dir"]).arg(system.folder()).args(["plan", id, "scale"]).output()?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        // Services cache an authenticated key for up to a second.
        until("the new plan to take effect", async || {
            let account = client.get(&format!("{base}/api/account")).await.ok()?.json();
            (account["_meta"]["plan"] == "scale").then_some(())
        })
        .await?;
        let form = json!({"name": "Contact", "fields": [{"name": "note", "label": "Note", "type": "text"}]});
        let form = client.retry_until_ok(Method::POST, &format!("{base}/api/forms"), &form).await?;
        let submit_url = form["submitUrl"].as_str().context("no submitUrl")?.to_owned();
        Ok(Self { client, base, submit_url })
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.client.retry_until_ok(Method::POST, &format!("{}{path}", self.base), body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        Ok(self.client.get(&format!("{}{path}", self.base)).await?.json())
    }

    /// Returns the submission's id.
    pub(crate) async fn submit(&self, note: &str) -> Result<String> {
        let accepted =
            self.client.retry_until_ok(Method::POST, &self.submit_url, &json!({"note": note})).await?;
        Ok(accepted["submissionId"].as_str().context("no submissionId")?.to_owned())
    }
}
