//! `logs`: shows the logs of services and stores.
#![expect(clippy::print_stdout, reason = "this command prints logs")]

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::arguments::Logs;
use crate::folder::Folder;

/// Size of the shown end of a log.
const TAIL_BYTES: u64 = 16 << 10;

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
    paths.sort();
    Ok(paths)
}
