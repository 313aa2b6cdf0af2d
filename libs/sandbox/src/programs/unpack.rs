//! Taking the kept part out of an archive whose checksum was right, readable and executable for all.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::packages::Package;

/// Links can't be published to npm; the package lists them in this file.
const LINKS: &str = "pg-symlinks.json";

/// Unpacks a gzipped tar.
pub(super) fn tar(archive: &Path, package: &Package, into: &Path) -> Result<()> {
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(File::open(archive)?));
    for entry in tar.entries()? {
        let mut entry = entry?;
        let Some(place) = kept(package, &entry.path()?) else { continue };
        let program = entry.header().mode()? & 0o111 != 0;
        write(&mut entry, &into.join(place), program)?;
    }
    links(into, package.root)?;
    open_folders(into)
}

/// Unpacks a zip. Wheels don't always mark programs as such, so everything kept of one is.
pub(super) fn zip(archive: &Path, package: &Package, into: &Path) -> Result<()> {
    let mut zip = zip::ZipArchive::new(File::open(archive)?)?;
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index)?;
        let Some(place) = entry.enclosed_name().and_then(|path| kept(package, &path)) else { continue };
        write(&mut entry, &into.join(place), true)?;
    }
    open_folders(into)
}

/// Where an entry goes below the folder; `None` if it isn't kept.
fn kept(package: &Package, path: &Path) -> Option<PathBuf> {
    let below = path.to_str()?.strip_prefix(package.root)?;
    let plain = !below.is_empty() && !below.ends_with('/') && below.split('/').all(|part| part != "..");
    (plain && package.keep.iter().any(|start| below.starts_with(start))).then(|| PathBuf::from(below))
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
    /// The file that is there, as a path from the package's root.
    source: String,
    /// The link to it, in the same folder.
    target: String,
}

fn links(home: &Path, root: &str) -> Result<()> {
    let list = home.join(LINKS);
    if !list.exists() {
        return Ok(());
    }
    // The list's paths start at the package, the folder at `package/native/`.
    let inside = root.strip_prefix("package/").unwrap_or(root);
    let found: Vec<Link> =
        serde_json::from_slice(&fs::read(&list)?).context("reading the package's links")?;
    for link in found {
        let (source, target) = (PathBuf::from(&link.source), link.target.strip_prefix(inside));
        let (Some(name), Some(target)) = (source.file_name(), target) else {
            bail!("a link of the package leads nowhere: {}", link.target)
        };
        if !home.join(target).exists() {
            symlink(name, home.join(target))?;
        }
    }
    Ok(())
}

/// Folders for all to enter, whatever this user's umask says.
fn open_folders(dir: &Path) -> Result<()> {
    fs::set_permissions(dir, Permissions::from_mode(0o755)).context("nothing of the archive was kept")?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_folders(&entry.path())?;
        }
    }
    Ok(())
}
