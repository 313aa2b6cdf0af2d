//! `logs`: shows the logs of services and stores. Their rotation bounds the disk space that they take.
#![expect(clippy::print_stdout, reason = "this command prints logs")]

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::arguments::Logs;
use crate::folder::Folder;

/// Size of the shown end of a log.
const TAIL_BYTES: u64 = 16 << 10;

/// A log of this size is rotated.
const ROTATE_BYTES: u64 = 32 << 20;
/// Rotated logs that are retained, `NAME.log.1` being the newest.
const RETAINED: usize = 3;
const ROTATION_INTERVAL: Duration = Duration::from_secs(10);

/// Rotates large logs until the caller drops this.
pub(crate) async fn rotate_large(folder: &Folder) -> Result<()> {
    let mut ticks = tokio::time::interval(ROTATION_INTERVAL);
    loop {
        ticks.tick().await;
        for path in paths(folder)? {
            if std::fs::metadata(&path).is_ok_and(|log| log.len() > ROTATE_BYTES) {
                let rotated = tokio::task::spawn_blocking(move || rotate(&path)).await?;
                rotated.unwrap_or_else(|error| tracing::warn!(%error, "a log could not be rotated"));
            }
        }
    }
}

/// Moves a log's content to `NAME.log.1`, older ones to `.2` and `.3`. The file stays, because its writers have it open for
/// appending; a line that is written between the copy and the truncation is lost.
pub(crate) fn rotate(log: &Path) -> std::io::Result<()> {
    if std::fs::metadata(log).map_or(true, |log| log.len() == 0) {
        return Ok(());
    }
    let rotated = |number: usize| log.with_added_extension(number.to_string());
    for number in (1..RETAINED).rev().filter(|number| rotated(*number).exists()) {
        std::fs::rename(rotated(number), rotated(number + 1))?;
    }
    std::fs::copy(log, rotated(1))?;
    File::options().write(true).open(log)?.set_len(0)
}

/// Prints the end of all logs or of one. With `--follow`, continues with new lines.
pub(crate) fn show(folder: &Folder, args: &Logs) -> Result<()> {
    let name = args.name.as_deref();
    let mut logs = Vec::new();
    for path in paths(folder)? {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        // Services that share a process share a log.
        if name
            .is_none_or(|name| name == stem || stem == "services" && crate::stack_file::NAMES.contains(&name))
        {
            let mut file = File::open(&path)?;
            let end = file.metadata()?.len();
            file.seek(SeekFrom::Start(end.saturating_sub(TAIL_BYTES)))?;
            logs.push((stem, file));
        }
    }
    if logs.is_empty() {
        bail!("there is no such log in {}", folder.logs()?.display());
    }
    loop {
        for (stem, file) in &mut logs {
            if file.metadata()?.len() < file.stream_position()? {
                // It was rotated.
                file.rewind()?;
            }
            let mut added = Vec::new();
            file.read_to_end(&mut added)?;
            for line in String::from_utf8_lossy(&added).lines() {
                println!("{stem:<14} {line}");
            }
        }
        std::io::stdout().flush()?;
        if !args.follow {
            return Ok(());
        }
        #[expect(clippy::disallowed_methods, reason = "a file has no event for new lines")]
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn paths(folder: &Folder) -> Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder.logs()?)?.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    paths.sort();
    Ok(paths)
}
