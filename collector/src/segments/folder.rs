//! The folder of segments: which file is in which state, and that one collector has it to itself.

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

/// A folder of segments, locked for as long as this lives.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

/// A segment that is being written.
#[derive(Debug)]
pub(super) struct OpenSegment {
    /// Its name, and the token it will be inserted with.
    pub(super) id: Uuid,
    path: PathBuf,
    file: File,
    /// Bytes known to be on disk.
    pub(super) bytes: u64,
    /// Backlog for so many was made beforehand; zeros follow what is written.
    filled: u64,
    /// Since when events are written to it.
    pub(super) since: DateTime<Utc>,
}

/// A segment that never changes again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SealedSegment {
    /// Its name, and the token it is inserted with.
    pub(super) id: Uuid,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// When its oldest event came, about; of what an earlier process left, when it was made.
    pub(super) since: DateTime<Utc>,
    /// An earlier process left it, and may have inserted it.
    pub(super) leftover: bool,
}

impl Folder {
    /// Takes possession of the folder, making it if need be. Whatever an earlier process left is sealed.
    pub(super) fn open(path: &Path) -> anyhow::Result<(Self, Vec<SealedSegment>)> {
        fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))?;
        let lock = File::create(path.join("lock")).context("making the lock file")?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => anyhow::bail!("{} belongs to another collector", path.display()),
            Err(TryLockError::Error(error)) => return Err(error).context("locking the folder of segments"),
        }
        let folder = Self { path: path.to_owned(), _lock: lock };
        let leftovers = folder.seal_leftovers().context("sealing what an earlier process left")?;
        Ok((folder, leftovers))
    }

    /// Oldest first.
    fn seal_leftovers(&self) -> io::Result<Vec<SealedSegment>> {
        let mut sealed = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            let id = path.file_stem().and_then(|name| name.to_str()?.parse::<Uuid>().ok());
            let state = path.extension().and_then(|extension| extension.to_str());
            let (Some(id), Some(OPEN | SEALED | REFUSED)) = (id, state) else { continue };
            let bytes = without_zeros(&path)?;
            // What is inserted from now on must be what stays on disk, whatever happens to the machine next.
            File::open(&path)?.sync_all()?;
            let segment = self.seal_file(id, &path, bytes, made_at(id))?;
            sealed.extend(segment.map(|segment| SealedSegment { leftover: true, ..segment }));
        }
        sealed.sort_by_key(|segment| segment.id);
        Ok(sealed)
    }

    /// A new, empty segment. Its name is on disk when this returns.
    pub(super) fn create(&self, id: Uuid) -> io::Result<OpenSegment> {
        let path = self.path_of(id, OPEN);
        let file = File::create_new(&path)?;
        File::open(&self.path)?.sync_all()?;
        Ok(OpenSegment { id, path, file, bytes: 0, filled: 0, since: made_at(id) })
    }

    /// The same, with zeros on disk where so many bytes may come.
    pub(super) fn create_filled(&self, id: Uuid, bytes: u64) -> io::Result<OpenSegment> {
        let mut segment = self.create(id)?;
        let filled = io::copy(&mut io::repeat(0).take(bytes), &mut segment.file)
            .and_then(|_| segment.file.sync_all())
            .and_then(|()| segment.file.rewind());
        match filled {
            Ok(()) => Ok(OpenSegment { filled: bytes, ..segment }),
            Err(error) => {
                segment.discard();
                Err(error)
            }
        }
    }

    /// Ends a segment; `None` if nothing is in it.
    pub(super) fn seal(&self, segment: &OpenSegment) -> io::Result<Option<SealedSegment>> {
        if segment.bytes < segment.filled {
            segment.file.set_len(segment.bytes)?;
        }
        self.seal_file(segment.id, &segment.path, segment.bytes, segment.since)
    }

    /// The rename needn't be on disk to count: should the machine lose it, the segment is found under its old name,
    /// with the same content and the same id. An empty segment, as a full disk makes one with every try, goes.
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

/// When a version 7 id was made.
fn made_at(id: Uuid) -> DateTime<Utc> {
    let time = id.get_timestamp().and_then(|time| {
        let (seconds, nanoseconds) = time.to_unix();
        DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)
    });
    time.unwrap_or_default()
}

/// Cuts the zeros off that follow the lines, and gives how many bytes are left.
fn without_zeros(path: &Path) -> io::Result<u64> {
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
    /// Whether these lines fit where room was made; into what has none any do.
    pub(super) fn has_room(&self, lines: &[u8]) -> bool {
        self.filled == 0 || self.bytes + lines.len() as u64 <= self.filled
    }

    /// Removes a segment that nothing was written to.
    pub(super) fn discard(&self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "an empty segment stays until the next start");
        }
    }

    /// Appends whole lines and waits until the disk has them.
    ///
    /// After an error nothing of `lines` is in the segment, as far as the disk obeys, and the segment must be
    /// sealed: a failed `fdatasync` may have forgotten what it failed to write.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(lines).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => self.bytes += lines.len() as u64,
            Err(_) => self.file.set_len(self.bytes)?,
        }
        written
    }
}

impl SealedSegment {
    /// How long its oldest event has waited.
    pub(super) fn age(&self, clock: &Clock) -> Duration {
        (clock.now() - self.since).to_std().unwrap_or_default()
    }

    /// Stored elsewhere: it may go.
    pub(super) fn delete(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    /// Kept for an operator, and for the next start.
    pub(super) fn refuse(&self) -> io::Result<()> {
        fs::rename(&self.path, self.path.with_extension(REFUSED))
    }
}
