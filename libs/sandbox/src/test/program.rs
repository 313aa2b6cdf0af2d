//! The `sandbox` program in the target directory of the tests. `cargo test --workspace` builds it, because this crate has
//! integration tests. `cargo test -p another` doesn't, so it is built from here.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};

/// This crate's directory, unless it was moved after the build.
const CRATE_DIR: &str = env!("CARGO_MANIFEST_DIR");

/// Returns the program. Builds it if it is missing or older than its sources.
pub(super) fn sandbox() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    // target/<profile>/deps/<test>
    let profile = test.parent().and_then(Path::parent).context("the test is not in a target directory")?;
    let program = profile.join("sandbox");
    if !is_fresh(&program) {
        build(profile)?;
    }
    if !program.is_file() {
        bail!("{} is missing; build it with: cargo build --workspace --bin sandbox", program.display());
    }
    Ok(program)
}

fn is_fresh(program: &Path) -> bool {
    let built = fs::metadata(program).and_then(|meta| meta.modified());
    built.is_ok_and(|built| newest(&Path::new(CRATE_DIR).join("src")).is_none_or(|source| source <= built))
}

fn newest(dir: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(dir).ok()?.flatten();
    entries
        .filter_map(|entry| {
            if entry.file_type().ok()?.is_dir() {
                newest(&entry.path())
            } else {
                entry.metadata().ok()?.modified().ok()
            }
        })
        .max()
}

/// Cargo holds no lock while tests run, so a test can call it. Building a test of this crate builds its program with the
/// same features as `cargo test --workspace`, so that nothing is built twice.
fn build(profile: &Path) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.current_dir(CRATE_DIR).args([
        "test",
        "--quiet",
        "--workspace",
        "--no-run",
        "--test",
        "supervisor",
    ]);
    match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => {}
        Some(profile) => {
            command.args(["--profile", profile]);
        }
    }
    let target = profile.parent().context("the test is not in a target directory")?;
    let output = command.arg("--target-dir").arg(target).output().context("running cargo")?;
    if !output.status.success() {
        bail!("building the sandbox: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
