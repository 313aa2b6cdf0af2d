//! A reader that fails after so many bytes, until its bound is lifted.

use std::io::{Error, Read, Result, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes that a [`BoundedReader`] may still deliver. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct ReadBound(Arc<AtomicU64>);

impl ReadBound {
    pub(super) fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// Lets the reader deliver any number of bytes.
    pub(super) fn lift(&self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }
}

/// A reader with a bound, for a library that owns the reader.
#[derive(Debug)]
pub(super) struct BoundedReader<R> {
    inner: R,
    bound: ReadBound,
}

impl<R> BoundedReader<R> {
    pub(super) fn new(inner: R, bound: &ReadBound) -> Self {
        Self { inner, bound: bound.clone() }
    }
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.inner.read(buffer)?;
        let remaining = self.bound.0.load(Ordering::Relaxed);
        let remaining = remaining.checked_sub(read as u64).ok_or_else(|| {
            Error::other("its directory is too large: shorten names, and leave comments and extra fields out")
        })?;
        self.bound.0.store(remaining, Ordering::Relaxed);
        Ok(read)
    }
}

impl<R: Seek> Seek for BoundedReader<R> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.inner.seek(to)
    }
}
