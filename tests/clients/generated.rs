//! Generates clients from the API document.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The document's file name in a client's folder.
const DOCUMENT: &str = "openapi.json";

/// Writes the package `generated` to `folder`. The generator must understand the whole document.
pub(crate) fn write_python_client(tools: &Path, document: &Value, folder: &Path) -> Result<()> {
    std::fs::write(folder.join(DOCUMENT), document.to_string())?;
    let mut generator = Command::new(tools.join("bin/openapi-python-client"));
    generator.args(["generate", "--meta", "none", "--fail-on-warning", "--output-path", "generated"]);
    generator.arg("--config").arg(tools.join("config.yml")).args(["--path", DOCUMENT]);
    run(generator.current_dir(folder))
}

/// Writes the types of the API to `folder` and compiles the script beside them, checking all types.
pub(crate) fn write_typescript_client(tools: &Path, document: &Value, folder: &Path) -> Result<()> {
    std::fs::write(folder.join(DOCUMENT), document.to_string())?;
    for file in ["package.json", "tsconfig.json", "readme.ts"] {
        std::fs::copy(tools.join(file), folder.join(file))?;
    }
    let programs = tools.join("node_modules/.bin");
    let mut generator = Command::new(programs.join("openapi-typescript"));
    run(generator.args([DOCUMENT, "--output", "api.ts"]).current_dir(folder))?;
    run(Command::new(programs.join("tsc")).arg("--project").arg(folder).current_dir(folder))
}

/// Runs a command to its end; its output is the error if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("running {command:?}"))?;
    let texts = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    ensure!(output.status.success(), "{command:?}: {}\n{}", output.status, texts.concat());
    Ok(())
}
