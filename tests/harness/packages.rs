//! Installs npm and PyPI packages once into the build folder, pinned by the lock files beside a test's scripts.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};

/// The packages of one test target. The lock files are `package.json` with `package-lock.json`, and `requirements.txt`.
#[derive(Debug, Clone, Copy)]
pub struct Packages {
    source: &'static str,
    target: &'static str,
}

impl Packages {
    /// `source` is the folder of the scripts and lock files; its name is unique. `target` is Cargo's folder for the files of
    /// tests: `env!("CARGO_TARGET_TMPDIR")`, which Cargo sets for test targets only.
    #[must_use]
    pub const fn new(source: &'static str, target: &'static str) -> Self {
        Self { source, target }
    }

    /// The folder with the npm packages and the scripts that use them.
    pub fn node(&self) -> Result<PathBuf> {
        self.installed("npm", &["package.json", "package-lock.json"], |folder| {
            let mut npm = Command::new("npm");
            run(npm.args(["ci", "--no-audit", "--no-fund"]).current_dir(folder))
                .context("this test needs node and npm to install third-party programs")
        })
    }

    /// A virtual environment with the PyPI packages and the scripts that use them; its interpreter is `bin/python`.
    pub fn python(&self) -> Result<PathBuf> {
        self.installed("pypi", &["requirements.txt"], |folder| {
            run(Command::new("python3").args(["-m", "venv"]).arg(folder))
                .context("this test needs Python 3 and pip to install third-party programs")?;
            // The lock lists all dependencies. With `--no-deps`, a newer release of one can't enter by the extras of another.
            let mut pip = Command::new(folder.join("bin/pip"));
            run(pip
                .args(["install", "--quiet", "--no-deps", "--require-hashes", "--requirement"])
                .arg(folder.join("requirements.txt")))
        })
    }

    /// A folder of this registry's packages, installed by the first caller and again after a lock file has changed.
    /// Concurrent callers wait.
    fn installed(
        &self,
        registry: &str,
        pins: &[&str],
        install: impl Fn(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let source = Path::new(self.source);
        let name = source.file_name().and_then(|name| name.to_str()).context("the folder has no name")?;
        let folder = Path::new(self.target).join(format!("{name}-{registry}"));
        fs::create_dir_all(&folder)?;
        let lock = File::create(folder.join("lock"))?;
        lock.lock()?;
        let stamp = folder.join("installed");
        let is_pinned = pins.iter().all(|pin| is_same(&source.join(pin), &folder.join(pin)));
        copy_files(source, &folder)?;
        if !(is_pinned && stamp.exists()) {
            let _was_none = fs::remove_file(&stamp);
            install(&folder)?;
            fs::write(stamp, [])?;
        }
        Ok(folder)
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    fs::read(one).is_ok_and(|bytes| fs::read(other).is_ok_and(|others| others == bytes))
}

/// Copies the files that changed, Rust's aside: another test may be reading those that did not.
fn copy_files(source: &Path, folder: &Path) -> Result<()> {
    for entry in fs::read_dir(source)? {
        let path = entry?.path();
        let (Some(name), false) = (path.file_name(), path.extension().is_some_and(|kind| kind == "rs"))
        else {
            continue;
        };
        let copy = folder.join(name);
        if path.is_file() && !is_same(&path, &copy) {
            fs::copy(&path, copy)?;
        }
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Runs a command with `input` as its standard input.
pub fn run_over(command: &mut Command, input: &[u8]) -> Result<Output> {
    let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    running.stdin.take().context("no stdin")?.write_all(input)?;
    Ok(running.wait_with_output()?)
}
