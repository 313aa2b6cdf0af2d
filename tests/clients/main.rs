//! Clients generated from the served API document: the document is valid, and a client in Python and one in TypeScript make
//! the README's calls on a running system.

mod generated;

use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{Client, Packages, Receiver, System, until};
use http::Method;
use serde_json::Value;

use self::generated::{run, write_python_client, write_typescript_client};

/// The local runner that the tests start.
const PROGRAM: &str = env!("CARGO_BIN_EXE_stack");

/// The generators, and the scripts that use their clients.
const PACKAGES: Packages =
    Packages::new(concat!(env!("CARGO_MANIFEST_DIR"), "/clients"), env!("CARGO_TARGET_TMPDIR"));

/// The site that the scripts deploy.
const SITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../control-plane/tests/api/matrix/site.zip");

/// The arguments of a script: the address, a key of an account on the plan `scale`, a receiver of webhooks, and a site.
struct Arguments {
    system: System,
    key: String,
    receiver: Receiver,
}

impl Arguments {
    async fn new() -> Result<Self> {
        let system = System::start(PROGRAM, false, &[]).await?;
        let base = &system.file.base_url;
        let mut client = system.client();
        let trial = client.retry_until_ok(Method::POST, &format!("{base}/api/trial"), &Value::Null).await?;
        let key = trial["key"].as_str().context("no key")?.to_owned();
        client.key = Some(key.clone());
        raise_plan(&system, &client).await?;
        Ok(Self { system, key, receiver: Receiver::listen(0).await? })
    }

    fn texts(&self) -> [&str; 4] {
        [&self.system.file.base_url, &self.key, &self.receiver.url, SITE]
    }

    /// The document as the running system serves it.
    async fn document(&self) -> Result<Value> {
        let url = format!("{}/api/openapi.json", self.system.file.base_url);
        let response = self.system.client().get(&url).await?;
        ensure!(response.status.is_success(), "{}", response.text());
        Ok(response.json())
    }
}

async fn raise_plan(system: &System, client: &Client) -> Result<()> {
    let url = format!("{}/api/account", system.file.base_url);
    let account = client.get(&url).await?.json();
    let id = account["id"].as_str().context("no id")?;
    let mut admin = Command::new(PROGRAM);
    run(admin.args(["admin", "--dir"]).arg(system.folder()).args(["plan", id, "scale"]))?;
    // Services cache an authenticated key for up to a second.
    until("the new plan to take effect", async || {
        let account = client.get(&url).await.ok()?.json();
        (account["_meta"]["plan"] == "scale").then_some(())
    })
    .await
}

#[tokio::test]
async fn the_served_document_is_valid_and_names_its_server() -> Result<()> {
    let arguments = Arguments::new().await?;
    let mut document = arguments.document().await?;
    assert_eq!(document["servers"][0]["url"], arguments.system.file.base_url.trim_end_matches('/'));
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), document.to_string())?;
    let validator = PACKAGES.python()?.join("bin/openapi-spec-validator");
    run(Command::new(&validator).args(["--schema", "3.1"]).arg(file.path()))?;

    let stored = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../control-plane/openapi.json"))?;
    let stored: Value = serde_json::from_slice(&stored)?;
    document["servers"] = stored["servers"].clone();
    assert!(document == stored, "the served document differs from control-plane/openapi.json");

    // The validator has an opinion.
    document["paths"]["/api/trial"]["post"]["responses"] = Value::Null;
    std::fs::write(file.path(), document.to_string())?;
    assert!(run(Command::new(&validator).args(["--schema", "3.1"]).arg(file.path())).is_err());
    Ok(())
}

#[tokio::test]
async fn a_python_client_makes_the_calls_of_the_readme() -> Result<()> {
    let arguments = Arguments::new().await?;
    let tools = PACKAGES.python()?;
    let folder = tempfile::tempdir()?;
    write_python_client(&tools, &arguments.document().await?, folder.path())?;
    let mut script = Command::new(tools.join("bin/python"));
    run(script.arg(tools.join("readme.py")).arg(folder.path()).args(arguments.texts()))?;
    Ok(())
}

#[tokio::test]
async fn a_typescript_client_makes_the_calls_of_the_readme() -> Result<()> {
    let arguments = Arguments::new().await?;
    let tools = PACKAGES.node()?;
    // Below the packages, where Node looks for them.
    let folder = tempfile::tempdir_in(&tools)?;
    write_typescript_client(&tools, &arguments.document().await?, folder.path())?;
    let script = folder.path().join("compiled/readme.js");
    run(Command::new("node").arg(script).args(arguments.texts()))?;
    Ok(())
}
