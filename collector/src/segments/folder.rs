//! The folder of segments. File names show the state of each segment, and a lock file admits one collector only.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use service::Clock;
use uuid::Uuid;

const OPEN: &str = "open";
const SEALED: &str = "sealed";
const REFUSED: &str = "refused";
/// The new content of a sealed segment, until it replaces the old one.
const REDUCED: &str = "reduced";

/// The locked folder. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

/// A segment that is being written.
#[derive(Debug)]
pub(super) struct OpenSegment {
    /// The file name, and the deduplication token of its insert.
    pub(super) id: Uuid,
    path: PathBuf,
    file: File,
    /// Bytes of records that are on disk.
    pub(super) bytes: u64,
    /// Preallocated bytes; zeros follow the records. 0 for a file that grows.
    preallocated: u64,
    /// When its first event arrived.
    pub(super) since: DateTime<Utc>,
}

/// An immutable segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SealedSegment {
    /// The file name, and the deduplication token of its insert.
    pub(super) id: Uuid,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// When its first event arrived; for a leftover, when the file was created.
    pub(super) since: DateTime<Utc>,
    /// Written by an earlier process, which may have inserted it.
    pub(super) leftover: bool,
}

/// The state of a segment's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentState {
    /// A collector is writing it, or was killed.
    Open,
    /// It waits to be sent.
    Sealed,
    /// ClickHouse refused it.
    Refused,
}

impl SegmentState {
    fn parse(extension: &str) -> Option<Self> {
        match extension {
            OPEN => Some(Self::Open),
            SEALED => Some(Self::Sealed),
            REFUSED => Some(Self::Refused),
            _ => None,
        }
    }

    /// Returns the extension of its file's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => OPEN,
            Self::Sealed => SEALED,
            Self::Refused => REFUSED,
        }
    }
}

/// A segment in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSegment {
    pub id: Uuid,
    pub state: SegmentState,
    /// The file's length; that of an open one includes preallocated space.
    pub bytes: u64,
    /// When the file was created.
    pub since: DateTime<Utc>,
}

/// Returns the segments of a folder, oldest first, without locking it.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<StoredSegment>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some((id, state)) = parse_name(&path) else { continue };
        match fs::metadata(&path) {
            Ok(file) => {
                segments.push(StoredSegment { id, state, bytes: file.len(), since: created_at(id) });
            }
            // A running collector has sent or renamed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    segments.sort_by_key(|segment| segment.id);
    Ok(segments)
}

fn parse_name(path: &Path) -> Option<(Uuid, SegmentState)> {
    let id = path.file_stem()?.to_str()?.parse().ok()?;
    Some((id, SegmentState::parse(path.extension()?.to_str()?)?))
}

impl Folder {
    /// Creates and locks the folder, and seals the segments of an earlier process.
    pub(super) fn open(path: &Path) -> anyhow::Result<(Self, Vec<SealedSegment>)> {
        fs::create_dir_all(path).with_context(|| format!("creating {}", path.display()))?;
        let lock = File::create(path.join("lock")).context("creating the lock file")?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                anyhow::bail!("{} is locked by another collector", path.display())
            }
            Err(TryLockError::Error(error)) => return Err(error).context("locking the segment folder"),
        }
        let folder = Self { path: path.to_owned(), _lock: lock };
        let leftovers = folder.seal_leftovers().context("sealing the segments of an earlier process")?;
        Ok((folder, leftovers))
    }

    /// Returns the leftovers, oldest first.
    fn seal_leftovers(&self) -> io::Result<Vec<SealedSegment>> {
        let mut sealed = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == REDUCED) {
                // The process ended before it replaced the segment, which is whole.
                fs::remove_file(&path)?;
            }
            let Some((id, _state)) = parse_name(&path) else { continue };
            let bytes = truncate_zeros(&path)?;
            // The content that is inserted must survive a crash of the machine, so that a retry inserts the same.
            File::open(&path)?.sync_all()?;
            let segment = self.seal_file(id, &path, bytes, created_at(id))?;
            sealed.extend(segment.map(|segment| SealedSegment { leftover: true, ..segment }));
        }
        sealed.sort_by_key(|segment| segment.id);
        Ok(sealed)
    }

    /// Creates an empty segment. Its directory entry is on disk when this returns.
    pub(super) fn create(&self, id: Uuid) -> io::Result<OpenSegment> {
        let path = self.path_of(id, OPEN);
        let file = File::create_new(&path)?;
        File::open(&self.path)?.sync_all()?;
        Ok(OpenSegment { id, path, file, bytes: 0, preallocated: 0, since: created_at(id) })
    }

    /// Creates a segment with this many zeros on disk.
    pub(super) fn create_filled(&self, id: Uuid, bytes: u64) -> io::Result<OpenSegment> {
        let mut segment = self.create(id)?;
        let filled = io::copy(&mut io::repeat(0).take(bytes), &mut segment.file)
            .and_then(|_| segment.file.sync_all())
            .and_then(|()| segment.file.rewind());
        match filled {
            Ok(()) => Ok(OpenSegment { preallocated: bytes, ..segment }),
            Err(error) => {
                segment.discard();
                Err(error)
            }
        }
    }

    /// Seals a segment. Deletes it and returns `None` if it is empty.
    pub(super) fn seal(&self, segment: &OpenSegment) -> io::Result<Option<SealedSegment>> {
        if segment.bytes < segment.preallocated {
            segment.file.set_len(segment.bytes)?;
        }
        self.seal_file(segment.id, &segment.path, segment.bytes, segment.since)
    }

    /// The rename need not be synced: if a crash reverts it, the segment is found under its old name with the same
    /// content and id. An empty segment, as each attempt on a full disk leaves one, is deleted.
    fn seal_file(
        &self,
        id: Uuid,
        path: &Path,
        bytes: u64,
        since: DateTime<Utc>,
    ) -> io::Result<Option<SealedSegment>> {
        if bytes == 0 {
            fs::remove_file(path)?;
            return Ok(None);
        }
        let sealed = self.path_of(id, SEALED);
        fs::rename(path, &sealed)?;
        Ok(Some(SealedSegment { id, path: sealed, bytes, since, leftover: false }))
    }

    fn path_of(&self, id: Uuid, state: &str) -> PathBuf {
        self.path.join(format!("{id}.{state}"))
    }
}

/// The timestamp of a version 7 id.
fn created_at(id: Uuid) -> DateTime<Utc> {
    let time = id.get_timestamp().and_then(|time| {
        let (seconds, nanoseconds) = time.to_unix();
        DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)
    });
    time.unwrap_or_default()
}

/// Truncates the zeros after the records. Returns the remaining length.
fn truncate_zeros(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut last = [1];
    if length > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last != [0] {
        return Ok(length);
    }
    let content = fs::read(path)?;
    let bytes = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
    OpenOptions::new().write(true).open(path)?.set_len(bytes)?;
    Ok(bytes)
}

impl OpenSegment {
    /// Whether these records fit into the preallocated space. A growing segment fits any.
    pub(super) fn fits(&self, records: &[u8]) -> bool {
        self.preallocated == 0 || self.bytes + records.len() as u64 <= self.preallocated
    }

    /// Deletes an unused segment.
    pub(super) fn discard(&self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "deleting an empty segment failed: the next start deletes it");
        }
    }

    /// Appends complete records and syncs them to disk.
    ///
    /// After an error the records are truncated, as far as the disk permits, and the caller must seal the segment: the
    /// kernel may have discarded the pages of a failed `fdatasync`.
    pub(super) fn append(&mut self, records: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(records).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => self.bytes += records.len() as u64,
            Err(_) => self.file.set_len(self.bytes)?,
        }
        written
    }
}

impl SealedSegment {
    /// How long its first event has waited.
    pub(super) fn age(&self, clock: &Clock) -> Duration {
        (clock.now() - self.since).to_std().unwrap_or_default()
    }

    pub(super) fn delete(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    /// Replaces the content, atomically even if the machine crashes.
    pub(super) fn replace(&self, content: &[u8]) -> io::Result<()> {
        let path = self.path.with_extension(REDUCED);
        let mut file = File::create(&path)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&path, &self.path)
    }

    /// Marks the segment as refused, for an operator and the next start.
    pub(super) fn refuse(&self) -> io::Result<()> {
        fs::rename(&self.path, self.path.with_extension(REFUSED))
    }
}
