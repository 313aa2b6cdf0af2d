//! A zip from a stranger: nothing it says of itself is believed.
//!
//! What is inflated is counted as it comes, so that a bomb ends at the bound whatever its headers say; and anything
//! that is not a plain file in a plain folder refuses the whole zip, by its name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use domain::deploys::paths::{self, NoPath};
use domain::deploys::{FILES_MAX, UNPACKED_BYTES_MAX};
use zip::{CompressionMethod, ZipArchive};

/// Most entries in all: folders, and what systems leave behind, included.
const ENTRIES_MAX: u64 = 10_000;
/// The end of a zip: 22 bytes, and a comment of at most 65,535.
const END_BYTES: u64 = 22;
const END_SIGNATURE: &[u8; 4] = b"PK\x05\x06";
/// What stands just before the end of a zip64, and leads to its count.
const LOCATOR_SIGNATURE: &[u8; 4] = b"PK\x06\x07";
const LOCATOR_BYTES: usize = 20;

/// What is wrong with a zip.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Wrong {
    /// The whole of it.
    #[error("the upload is not a zip that can be read: {0}")]
    Whole(String),
    /// It has too many files.
    #[error("the zip has more than {FILES_MAX} files")]
    TooMany,
    /// Unpacked it is too large.
    #[error("unpacked, the zip has more than {} MB", UNPACKED_BYTES_MAX >> 20)]
    TooLarge,
    /// An entry's name.
    #[error("entry `{0}`: {1}")]
    Name(String, NoPath),
    /// An entry.
    #[error("entry `{0}`: {1}")]
    Entry(String, String),
}

impl Wrong {
    fn entry(name: &str, what: impl Into<String>) -> Self {
        Self::Entry(name.to_owned(), what.into())
    }
}

/// A zip whose every entry is a plain file.
pub(crate) struct Archive {
    zip: ZipArchive<BufReader<File>>,
    /// Each file's place in the zip, by its path.
    files: BTreeMap<String, usize>,
    /// Bytes that may still be inflated.
    left: u64,
}

impl Archive {
    /// Looks through all entries. Nothing is inflated yet.
    ///
    /// # Errors
    /// [`Wrong`].
    pub(crate) fn open(mut file: File) -> Result<Self, Wrong> {
        let unreadable = |error: std::io::Error| Wrong::Whole(error.to_string());
        if counts_elsewhere(&mut file).map_err(unreadable)? {
            return Err(Wrong::Whole("it is a zip64, for which it is too small".to_owned()));
        }
        let entries = count_entries(&mut file).map_err(unreadable)?;
        let entries = entries.ok_or_else(|| Wrong::Whole("it has no end".to_owned()))?;
        if entries > ENTRIES_MAX {
            return Err(Wrong::TooMany);
        }
        let zip = ZipArchive::new(BufReader::new(file)).map_err(|error| Wrong::Whole(error.to_string()))?;
        // The reader keeps one of several entries with the same name.
        if zip.len() as u64 != entries {
            return Err(Wrong::Whole("several of its entries have the same name".to_owned()));
        }
        let mut files = BTreeMap::new();
        for index in 0..zip.len() {
            if let Some(path) = plain_file(&zip, index)?
                && files.insert(path.clone(), index).is_some()
            {
                return Err(Wrong::entry(&path, "another entry has the same path"));
            }
        }
        if files.len() > FILES_MAX {
            return Err(Wrong::TooMany);
        }
        Ok(Self { zip, files, left: UNPACKED_BYTES_MAX })
    }

    /// The paths of all files, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The bytes of a file, checked against its checksum; none if there are more than `most`.
    ///
    /// # Errors
    /// [`Wrong`].
    pub(crate) fn read(&mut self, path: &str, most: u64) -> Result<Option<Vec<u8>>, Wrong> {
        let index = self.files.get(path).copied().ok_or_else(|| Wrong::entry(path, "it is gone"))?;
        let entry = self.zip.by_index(index).map_err(|error| Wrong::entry(path, error.to_string()))?;
        let bound = most.min(self.left);
        let mut bytes = Vec::new();
        let read = entry.take(bound + 1).read_to_end(&mut bytes);
        read.map_err(|error| Wrong::entry(path, error.to_string()))?;
        let size = bytes.len() as u64;
        if size > self.left {
            return Err(Wrong::TooLarge);
        }
        self.left -= size;
        Ok((size <= most).then_some(bytes))
    }
}

/// The path of an entry that is a file; none if it is a folder, or nothing anybody meant to pack.
fn plain_file(zip: &ZipArchive<BufReader<File>>, index: usize) -> Result<Option<String>, Wrong> {
    let entry = zip.by_index_data(index).map_err(|error| Wrong::Whole(error.to_string()))?;
    let shown = String::from_utf8_lossy(entry.name_raw()).escape_debug().take(200).collect::<String>();
    let path = paths::read(entry.name_raw()).map_err(|why| Wrong::Name(shown.clone(), why))?;
    // The upper bits say what kind of file it is, where a system that has such kinds wrote the zip.
    let kind = entry.unix_mode().unwrap_or_default() & 0o170_000;
    if entry.is_symlink() || kind == 0o120_000 {
        return Err(Wrong::entry(&shown, "it is a symbolic link"));
    }
    if entry.is_dir() {
        return Ok(None);
    }
    if !matches!(kind, 0 | 0o100_000) {
        return Err(Wrong::entry(&shown, "it is no plain file"));
    }
    if paths::is_junk(&path) {
        return Ok(None);
    }
    if entry.encrypted() {
        return Err(Wrong::entry(&shown, "it is encrypted"));
    }
    if !matches!(entry.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
        return Err(Wrong::entry(
            &shown,
            format!("it is compressed by {}; use deflate", entry.compression()),
        ));
    }
    Ok(Some(path))
}

/// Whether any end in the zip may leave its count to a zip64's, which can be of millions: the reader goes by whichever
/// end it can make sense of, and makes room for all its entries first.
fn counts_elsewhere(file: &mut File) -> std::io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let (mut bytes, step) = (Vec::new(), 1 << 20);
    while file.take(step).read_to_end(&mut bytes)? > 0 {
        let mut ends = bytes.windows(4).enumerate().filter(|(_, word)| *word == LOCATOR_SIGNATURE);
        if ends
            .any(|(at, _)| bytes[at..].get(LOCATOR_BYTES..).is_some_and(|end| end.starts_with(END_SIGNATURE)))
        {
            file.seek(SeekFrom::Start(0))?;
            return Ok(true);
        }
        bytes.drain(..bytes.len().saturating_sub(LOCATOR_BYTES + END_SIGNATURE.len()));
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(false)
}

/// How many entries the end of the zip says there are; none if it has no end.
fn count_entries(file: &mut File) -> std::io::Result<Option<u64>> {
    let size = file.seek(SeekFrom::End(0))?;
    let tail = size.min(END_BYTES + u64::from(u16::MAX));
    file.seek(SeekFrom::Start(size - tail))?;
    let mut bytes = Vec::new();
    file.take(tail).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(0))?;
    let ends = bytes.windows(4).enumerate().rev().filter(|(_, word)| *word == END_SIGNATURE);
    let number = |at: usize| bytes.get(at..at + 2).map(|two| u64::from(two[0]) | u64::from(two[1]) << 8);
    // The last one whose comment reaches just to the end of the file.
    let mut ends = ends.filter(|(at, _)| {
        number(at + 20) == u64::try_from(bytes.len() - at).ok().and_then(|left| left.checked_sub(END_BYTES))
    });
    Ok(ends.next().and_then(|(at, _)| number(at + 10)))
}

#[cfg(test)]
mod tests;
