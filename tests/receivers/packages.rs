//! Installs npm and PyPI packages once into the build folder, pinned by lock files.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};

/// The folder of the scripts and lock files.
fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("receivers")
}

/// The folder with the npm packages and the scripts that use them.
pub(crate) fn node() -> Result<PathBuf> {
    let pins = ["package.json", "package-lock.json"];
    installed("receivers-npm", &pins, &["verify.mjs", "formats.mjs"], |folder| {
        let mut npm = Command::new("npm");
        run(npm.args(["ci", "--no-audit", "--no-fund"]).current_dir(folder))
            .context("this test needs node and npm to install third-party receivers")
    })
}

/// A virtual environment with the PyPI packages; its interpreter is `bin/python`.
pub(crate) fn python() -> Result<PathBuf> {
    installed("receivers-pypi", &["requirements.txt"], &["verify.py"], |folder| {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))
            .context("this test needs Python 3 and pip to install a third-party receiver")?;
        let mut pip = Command::new(folder.join("bin/pip"));
        run(pip
            .args(["install", "--quiet", "--require-hashes", "--requirement"])
            .arg(folder.join("requirements.txt")))
    })
}

/// The folder `name`, installed by the first caller and again after a lock file has changed. Concurrent callers wait.
fn installed(
    name: &str,
    pins: &[&str],
    scripts: &[&str],
    install: impl Fn(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder)?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let is_same = |file: &&str| fs::read(source_folder().join(file)).ok() == fs::read(folder.join(file)).ok();
    let (stamp, is_pinned) = (folder.join("installed"), pins.iter().all(is_same));
    for file in pins.iter().chain(scripts) {
        fs::copy(source_folder().join(file), folder.join(file))?;
    }
    if !(is_pinned && stamp.exists()) {
        let _was_none = fs::remove_file(&stamp);
        install(&folder)?;
        fs::write(stamp, [])?;
    }
    Ok(folder)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Runs a command with `input` as its standard input.
pub(crate) fn run_over(command: &mut Command, input: &[u8]) -> Result<Output> {
    let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    running.stdin.take().context("no stdin")?.write_all(input)?;
    Ok(running.wait_with_output()?)
}
