//! Reads untrusted zip files.
//!
//! An entry inflates to the size that the directory declares or the zip is rejected, so the size of a file is known
//! before it is in memory. All files together stop at a bound. An entry that is neither a regular file nor a folder
//! rejects the whole zip, and the error names the entry.

mod bounded_reader;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};

use domain::static_sites::limits::{UNPACKED_BYTES_MAX, ZIP_ENTRIES_MAX};
use domain::static_sites::reasons::is_never_served;
use domain::static_sites::site_path::{self, PathError};
use domain::static_sites::site_plan::ZipFile;
use zip::{CompressionMethod, ZipArchive};

use bounded_reader::{BoundedReader, ReadBound};

/// Upper bound of the zip's directory. Each entry can have 192 KB of names, extra fields and comments, and the zip crate
/// holds them in memory several times.
const MAX_DIRECTORY_BYTES: u64 = 8 << 20;
/// Length of the end-of-central-directory record, without its comment of at most 65,535 bytes.
const END_BYTES: u64 = 22;
const END_SIGNATURE: &[u8; 4] = b"PK\x05\x06";
/// The zip64 locator, which precedes the end record and leads to the 64-bit count.
const LOCATOR_SIGNATURE: &[u8; 4] = b"PK\x06\x07";
const LOCATOR_BYTES: usize = 20;
/// Bytes of an entry that are inflated at a time.
const COPY_BYTES: usize = 64 << 10;

/// The reason why a zip is rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    #[error("the upload is not a readable zip: {0}")]
    Unreadable(String),
    #[error("the site has no HTML page")]
    NoHtml,
    #[error("the zip has more than {0} files, the maximum of the plan")]
    TooManyFiles(usize),
    #[error("the zip has more than {ZIP_ENTRIES_MAX} entries")]
    TooManyEntries,
    #[error("unpacked, the zip has more than {} MB", UNPACKED_BYTES_MAX >> 20)]
    TooLarge,
    #[error("entry `{0}`: {1}")]
    InvalidName(String, PathError),
    #[error("entry `{0}`: {1}")]
    InvalidEntry(String, String),
    /// The fault is not the zip's.
    #[error("writing an inflated file: {0}")]
    Disk(std::io::Error),
}

impl ArchiveError {
    pub(super) fn entry(name: &str, reason: impl Into<String>) -> Self {
        Self::InvalidEntry(name.to_owned(), reason.into())
    }
}

/// A zip after all its entries have been checked.
pub(crate) struct Archive {
    zip: ZipArchive<BoundedReader<BufReader<File>>>,
    files: BTreeMap<String, Entry>,
    /// Bytes that may still be inflated.
    remaining: u64,
}

/// A file in the zip.
#[derive(Debug, Clone, Copy)]
struct Entry {
    index: usize,
    /// As the directory declares it.
    size_bytes: u64,
}

impl Archive {
    /// Checks all entries, without inflating any. At most `max_files` may be served.
    pub(crate) fn open(mut file: File, max_files: usize) -> Result<Self, ArchiveError> {
        let unreadable = |error: std::io::Error| ArchiveError::Unreadable(error.to_string());
        if has_zip64_locator(&mut file).map_err(unreadable)? {
            return Err(ArchiveError::Unreadable("it is a zip64, which its size does not need".to_owned()));
        }
        let entries = count_entries(&mut file).map_err(unreadable)?;
        let entries = entries.ok_or_else(|| ArchiveError::Unreadable("it has no end record".to_owned()))?;
        if entries > ZIP_ENTRIES_MAX {
            return Err(ArchiveError::TooManyEntries);
        }
        let bound = ReadBound::new(MAX_DIRECTORY_BYTES);
        let zip = ZipArchive::new(BoundedReader::new(BufReader::new(file), &bound))
            .map_err(|error| ArchiveError::Unreadable(error.to_string()))?;
        bound.lift();
        // The zip crate keeps only one of several entries with the same name.
        if zip.len() as u64 != entries {
            return Err(ArchiveError::Unreadable("several of its entries have the same name".to_owned()));
        }
        let mut files = BTreeMap::new();
        for index in 0..zip.len() {
            if let Some((path, size_bytes)) = regular_file(&zip, index)?
                && files.insert(path.clone(), Entry { index, size_bytes }).is_some()
            {
                return Err(ArchiveError::entry(&path, "another entry has the same path"));
            }
        }
        if files.keys().filter(|path| !is_never_served(path)).count() > max_files {
            return Err(ArchiveError::TooManyFiles(max_files));
        }
        Ok(Self { zip, files, remaining: UNPACKED_BYTES_MAX })
    }

    /// All files, by path.
    pub(crate) fn files(&self) -> Vec<ZipFile<'_>> {
        let files = self.files.iter();
        files.map(|(path, Entry { size_bytes, .. })| ZipFile { path, size_bytes: *size_bytes }).collect()
    }

    /// Returns whether the zip has a file.
    pub(crate) fn contains(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Returns the declared size of a file. No file inflates to another size.
    pub(crate) fn size_bytes(&self, path: &str) -> Result<u64, ArchiveError> {
        Ok(self.entry(path)?.size_bytes)
    }

    /// Returns the bytes of a file after its checksum is verified, or `None` if it has more than `max_bytes`.
    pub(crate) fn read(&mut self, path: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, ArchiveError> {
        let size_bytes = self.size_bytes(path)?;
        if size_bytes > max_bytes {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size_bytes).unwrap_or_default());
        self.copy(path, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// Writes the bytes of a file, of which only a few are in memory at a time. After an error `output` may have some of
    /// them.
    pub(crate) fn copy(&mut self, path: &str, output: &mut impl Write) -> Result<(), ArchiveError> {
        let Entry { index, size_bytes } = self.entry(path)?;
        self.remaining = self.remaining.checked_sub(size_bytes).ok_or(ArchiveError::TooLarge)?;
        let entry = self.zip.by_index(index).map_err(|error| ArchiveError::entry(path, error.to_string()))?;
        // The checksum is verified at the end of the entry, so one byte more is requested.
        let mut entry = entry.take(size_bytes + 1);
        let (mut buffer, mut copied) = (vec![0; COPY_BYTES], 0);
        loop {
            let read = entry.read(&mut buffer);
            let read = read.map_err(|error| ArchiveError::entry(path, error.to_string()))?;
            if read == 0 {
                break;
            }
            copied += read as u64;
            output.write_all(&buffer[..read]).map_err(ArchiveError::Disk)?;
        }
        if copied != size_bytes {
            return Err(ArchiveError::entry(path, "its size differs from the one in the zip's directory"));
        }
        Ok(())
    }

    fn entry(&self, path: &str) -> Result<Entry, ArchiveError> {
        self.files.get(path).copied().ok_or_else(|| ArchiveError::entry(path, "it is missing"))
    }
}

/// Returns path and size of an entry that is a file, or `None` for folders.
fn regular_file<R: Read + Seek>(
    zip: &ZipArchive<R>,
    index: usize,
) -> Result<Option<(String, u64)>, ArchiveError> {
    let entry = zip.by_index_data(index).map_err(|error| ArchiveError::Unreadable(error.to_string()))?;
    let shown = String::from_utf8_lossy(entry.name_raw()).escape_debug().take(200).collect::<String>();
    let path =
        site_path::of_entry(entry.name_raw()).map_err(|why| ArchiveError::InvalidName(shown.clone(), why))?;
    // The file type of the Unix mode; zero if the zip was written elsewhere.
    let kind = entry.unix_mode().unwrap_or_default() & 0o170_000;
    if entry.is_symlink() || kind == 0o120_000 {
        return Err(ArchiveError::entry(&shown, "it is a symbolic link"));
    }
    if entry.is_dir() {
        return Ok(None);
    }
    if !matches!(kind, 0 | 0o100_000) {
        return Err(ArchiveError::entry(&shown, "it is not a regular file"));
    }
    if is_never_served(&path) {
        return Ok(Some((path, entry.size())));
    }
    if entry.encrypted() {
        return Err(ArchiveError::entry(&shown, "it is encrypted"));
    }
    if !matches!(entry.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
        return Err(ArchiveError::entry(
            &shown,
            format!("it is compressed with {}; use deflate", entry.compression()),
        ));
    }
    Ok(Some((path, entry.size())))
}

/// Whether any end record may defer to a zip64 record, which can claim millions of entries. The zip crate uses any end
/// record that parses, and allocates for all claimed entries first.
fn has_zip64_locator(file: &mut File) -> std::io::Result<bool> {
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

/// Returns the number of entries in the end record, or `None` without such a record.
fn count_entries(file: &mut File) -> std::io::Result<Option<u64>> {
    let size = file.seek(SeekFrom::End(0))?;
    let tail = size.min(END_BYTES + u64::from(u16::MAX));
    file.seek(SeekFrom::Start(size - tail))?;
    let mut bytes = Vec::new();
    file.take(tail).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(0))?;
    let ends = bytes.windows(4).enumerate().rev().filter(|(_, word)| *word == END_SIGNATURE);
    let number = |at: usize| bytes.get(at..at + 2).map(|two| u64::from(two[0]) | u64::from(two[1]) << 8);
    // The last record with a comment that ends exactly at the end of the file.
    let mut ends = ends.filter(|(at, _)| {
        number(at + 20) == u64::try_from(bytes.len() - at).ok().and_then(|left| left.checked_sub(END_BYTES))
    });
    Ok(ends.next().and_then(|(at, _)| number(at + 10)))
}

#[cfg(test)]
mod tests;
