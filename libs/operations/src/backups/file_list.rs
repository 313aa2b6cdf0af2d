//! Lists of files with their digests: one line each of digest, bytes and path.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

/// A file of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedFile {
    pub(super) sha256: String,
    pub(super) bytes: u64,
    /// Relative to the list's root.
    pub(super) path: String,
}

/// Writes a list line by line.
pub(super) struct ListWriter {
    out: BufWriter<File>,
    digest: Sha256,
}

impl ListWriter {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Self { out: BufWriter::new(file), digest: Sha256::new() })
    }

    pub(super) fn add(&mut self, file: &ListedFile) -> Result<()> {
        let line = format!("{}\t{}\t{}\n", file.sha256, file.bytes, file.path);
        self.digest.update(line.as_bytes());
        Ok(self.out.write_all(line.as_bytes())?)
    }

    /// Makes the list durable. Returns its digest.
    pub(super) fn finish(self) -> Result<String> {
        let file = self.out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(hex::encode(self.digest.finalize()))
    }
}

/// Reads a list whose digest is known.
pub(super) fn read(path: &Path, sha256: &str) -> Result<Vec<ListedFile>> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let (mut files, mut digest) = (Vec::new(), Sha256::new());
    for line in BufReader::new(file).lines() {
        let line = line?;
        digest.update(line.as_bytes());
        digest.update(b"\n");
        let mut fields = line.splitn(3, '\t');
        let listed = (|| {
            let (sha256, bytes, path) = (fields.next()?, fields.next()?, fields.next()?);
            Some(ListedFile { sha256: sha256.to_owned(), bytes: bytes.parse().ok()?, path: path.to_owned() })
        })();
        files.push(listed.with_context(|| format!("{}: unreadable line", path.display()))?);
    }
    if hex::encode(digest.finalize()) != sha256 {
        bail!("{} is not the list that the manifest names: its digest differs", path.display());
    }
    Ok(files)
}

/// Lists all files below a folder, sorted by path.
pub(super) fn list_folder(root: &Path) -> Result<Vec<ListedFile>> {
    let mut files = Vec::new();
    for path in files_below(root)? {
        let (sha256, bytes) = digest_file(&path)?;
        let path = path.strip_prefix(root)?.to_str().context("a file name is not UTF-8")?.to_owned();
        files.push(ListedFile { sha256, bytes, path });
    }
    Ok(files)
}

/// Returns the paths of all files below a folder, sorted. A file that disappears meanwhile is left out.
pub(super) fn files_below(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the digest and the size of a file.
pub(super) fn digest_file(path: &Path) -> Result<(String, u64)> {
    let mut file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let (mut digest, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 18]);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((hex::encode(digest.finalize()), bytes));
        }
        digest.update(buffer.get(..read).unwrap_or_default());
        bytes += read as u64;
    }
}

/// Returns what is wrong with the listed files below `root`: one sentence each, up to `limit`.
pub(super) fn verify(root: &Path, files: &[ListedFile], limit: usize) -> Vec<String> {
    let wrong = files.iter().filter_map(|listed| {
        let path = root.join(&listed.path);
        match digest_file(&path) {
            Err(error) => Some(format!("{error:#}")),
            Ok((sha256, bytes)) if (&sha256, bytes) != (&listed.sha256, listed.bytes) => {
                Some(format!("{} has other bytes than when it was written", path.display()))
            }
            Ok(_) => None,
        }
    });
    wrong.take(limit).collect()
}
