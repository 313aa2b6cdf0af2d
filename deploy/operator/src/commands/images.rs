//! `webruntime images`.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, ExitCode};

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};

/// Shown under `images --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  webruntime images pin                                  write the digests of the tags into .env
  webruntime images pin --env-file deploy/compose/.env
  webruntime images pin --update                         … and replace the digests that are there

A tag can be published anew; a digest is the image itself. Each line IMAGE=repository:tag, with `IMAGE` at the end of its name,
becomes IMAGE=repository:tag@sha256:…, with its quotes and its comment; other lines stay as they are. A line of an image that
can't be read, such as one with another variable in it, is an error. The command asks the registry through
`docker buildx imagetools inspect`, and otherwise uses the image that `docker pull` got. Images that were built on this machine
have no digest and stay as they are.";

/// Options of `images`.
#[derive(Debug, Args)]
pub(crate) struct Images {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the digests of the image tags into .env
    #[command(after_help = EXAMPLES)]
    Pin {
        /// The file
        #[arg(long, value_name = "FILE", default_value = ".env")]
        env_file: PathBuf,
        /// Replace digests too, by those that the tags have now
        #[arg(long)]
        update: bool,
        /// The docker program
        #[arg(long, value_name = "PROGRAM", default_value = "docker")]
        docker: OsString,
    },
}

/// What is known of an image's digest.
#[derive(Debug, PartialEq, Eq)]
enum Digest {
    Known(String),
    /// The image was built on this machine.
    None,
}

/// Executes the command.
pub(crate) fn run(args: &Images) -> Result<ExitCode> {
    let Command::Pin { env_file, update, docker } = &args.command;
    let text = fs::read_to_string(env_file).with_context(|| format!("reading {}", env_file.display()))?;
    let (mut lines, mut changed, mut failed) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        let pinned = match image_of(line) {
            Err(reason) => {
                eprintln!("{}: {reason}", line.trim());
                failed += 1;
                None
            }
            Ok(Some((name, image))) if *update || !image.contains('@') => {
                let tag = image.split('@').next().unwrap_or_default();
                match digest_of(docker, tag) {
                    Ok(Digest::Known(digest)) => {
                        println!("{name}: {tag}@{digest}");
                        Some(with_value(line, image, &format!("{tag}@{digest}")))
                    }
                    Ok(Digest::None) => {
                        println!("{name}: {tag} was built on this machine and has no digest");
                        None
                    }
                    Err(error) => {
                        eprintln!("{name}: {tag}: {error:#}");
                        failed += 1;
                        None
                    }
                }
            }
            Ok(Some((name, image))) => {
                println!("{name}: {image} is pinned already; --update asks again");
                None
            }
            Ok(None) => None,
        };
        changed += usize::from(pinned.as_deref().is_some_and(|pinned| pinned != line));
        lines.push(pinned.unwrap_or_else(|| line.to_owned()));
    }
    if changed > 0 {
        replace(env_file, &lines.concat())?;
    }
    println!("{}: {changed} images pinned.", env_file.display());
    if failed > 0 {
        bail!(
            "{failed} images have no digest yet; the lines above say why. Correct their lines, pull them, or connect to their registry"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns name and value of a line such as `POSTGRES_IMAGE="postgres:18.1-trixie"  # comment`; `None` if it sets no image. The
/// error says why the image can't be read.
fn image_of(line: &str) -> Result<Option<(&str, &str)>, &'static str> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
    let Some((name, value)) = line.split_once('=') else { return Ok(None) };
    if name.starts_with('#') || !name.trim_end().ends_with("IMAGE") {
        return Ok(None);
    }
    if name.contains(char::is_whitespace) {
        return Err("there is a space in its name or before the equals sign");
    }
    let value = value.trim_start();
    // All of it is a comment.
    if value.starts_with('#') {
        return Ok(None);
    }
    let (value, rest) = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let inner = value.get(1..).unwrap_or_default();
            inner.split_once(quote).ok_or("its closing quote is missing")?
        }
        // A comment begins after a space.
        _ => value.find(char::is_whitespace).map_or((value, ""), |end| value.split_at(end)),
    };
    let rest = rest.trim_start();
    if !(rest.is_empty() || rest.starts_with('#')) {
        return Err("there is more than an image and a comment");
    }
    if value.contains('$') {
        return Err("it has another variable in it; write the image itself");
    }
    if value.contains(char::is_whitespace) {
        return Err("there is a space in the image");
    }
    Ok((!value.is_empty()).then_some((name, value)))
}

/// Replaces the value of a line.
fn with_value(line: &str, value: &str, new: &str) -> String {
    let (name, rest) = line.split_once('=').unwrap_or((line, ""));
    format!("{name}={}", rest.replacen(value, new, 1))
}

/// Asks the registry, or else the images of this machine.
fn digest_of(docker: &OsStr, image: &str) -> Result<Digest> {
    let ask = ["buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}", image];
    let refused = match output(docker, &ask)? {
        Ok(text) => return parse_digest(&text),
        Err(refused) => refused,
    };
    let local = ["image", "inspect", "--format", "{{range .RepoDigests}}{{println .}}{{end}}", image];
    match output(docker, &local)? {
        Ok(text) => match text.lines().find_map(|line| line.split_once('@')) {
            Some((_repository, digest)) => parse_digest(digest),
            None => Ok(Digest::None),
        },
        Err(missing) => bail!("{}; {}", refused.trim(), missing.trim()),
    }
}

fn parse_digest(text: &str) -> Result<Digest> {
    let digest = text.trim();
    let hex = digest.strip_prefix("sha256:").unwrap_or_default();
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        bail!("docker answered something else than a digest: {digest:?}");
    }
    Ok(Digest::Known(digest.to_owned()))
}

/// Runs docker. Returns its output, or else what it wrote to standard error.
fn output(docker: &OsStr, args: &[&str]) -> Result<Result<String, String>> {
    let done = Process::new(docker).args(args).output().with_context(|| {
        format!("running `{}`: install Docker, or name its program with --docker", docker.display())
    })?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(if done.status.success() { Ok(text(done.stdout)) } else { Err(text(done.stderr)) })
}

/// Replaces a file at once, with the permissions that it had.
fn replace(path: &Path, text: &str) -> Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&partial)?;
        file.set_permissions(fs::metadata(path)?.permissions())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, path)
    };
    write().with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_images_are_found() {
        for (line, image) in [
            ("REDIS_IMAGE=redis:8.2\n", ("REDIS_IMAGE", "redis:8.2")),
            ("IMAGE=\"redis:8.2\"", ("IMAGE", "redis:8.2")),
            ("X_IMAGE=a:1 # note", ("X_IMAGE", "a:1")),
            ("X_IMAGE='a:1'\t# note's end", ("X_IMAGE", "a:1")),
            ("export X_IMAGE= a:1", ("X_IMAGE", "a:1")),
        ] {
            assert_eq!(image_of(line), Ok(Some(image)), "{line}");
        }
        for other in
            ["# REDIS_IMAGE=redis:8.2", "VERSION=0.1", "A_IMAGE=", "A_IMAGE= # none", "A_IMAGE=\"\"", ""]
        {
            assert_eq!(image_of(other), Ok(None), "{other}");
        }
        for unreadable in
            ["A_IMAGE=$B_IMAGE", "IMAGE = \"redis:8.2\"", "A_IMAGE=\"a:1", "A_IMAGE=a:1 b:2", "A_IMAGE='a 1'"]
        {
            assert!(image_of(unreadable).is_err(), "{unreadable}");
        }
    }

    #[test]
    fn only_a_digest_is_a_digest() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(parse_digest(&format!("{digest}\n")).unwrap(), Digest::Known(digest));
        for other in ["", "sha256:", "sha256:0a", "<no value>"] {
            assert!(parse_digest(other).is_err(), "{other}");
        }
    }
}
