//! The files of a site by path, from two sources: the uploaded zip, and what the account has stored of the files that the
//! deploy announced. Reading blocks the thread.

use std::fs::File;
use std::io;

use domain::deploys::manifest::needs_bytes;
use domain::static_sites::site_plan::ZipFile;
use sha2::{Digest, Sha256};

use super::announced::{AnnouncedFile, AnnouncedFiles};
use super::archive::{Archive, ArchiveError};
use super::spool::{Digesting, Span, Spool};

/// Where the bytes of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// On disk, to be stored.
    Spooled(Span),
    /// In the blob store, as many.
    Stored(u64),
}

impl Contents {
    /// Returns the number of bytes.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Spooled(span) => span.bytes,
            Self::Stored(bytes) => bytes,
        }
    }
}

/// The limits of the account's plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileLimits {
    /// Further files reject the zip.
    pub(crate) max_files: usize,
    /// Larger files are left out.
    pub(crate) max_file_bytes: u64,
}

/// The inputs of a deploy.
#[derive(Debug)]
pub(crate) struct SiteSources {
    /// The uploaded zip; `None` if nothing had to be uploaded.
    pub(crate) zip: Option<File>,
    /// `None` if the zip has all files.
    pub(crate) announced: Option<AnnouncedFiles>,
}

/// The files of a site.
pub(super) struct SiteFiles {
    zip: Option<Archive>,
    announced: Option<AnnouncedFiles>,
}

impl SiteFiles {
    /// Opens the zip. If files were announced, it must have those that are not stored, and no others.
    pub(super) fn open(sources: SiteSources, limits: FileLimits) -> Result<Self, ArchiveError> {
        let zip = sources.zip.map(|zip| Archive::open(zip, limits.max_files)).transpose()?;
        let site = Self { zip, announced: sources.announced };
        site.check_announced(limits.max_file_bytes)?;
        Ok(site)
    }

    fn check_announced(&self, max_file_bytes: u64) -> Result<(), ArchiveError> {
        let Some(announced) = &self.announced else { return Ok(()) };
        for ZipFile { path, size_bytes } in self.zip.iter().flat_map(Archive::files) {
            let Some(file) = announced.files.get(path) else {
                return Err(ArchiveError::entry(path, "it was not announced in `files`"));
            };
            if file.size_bytes != size_bytes {
                let message = format!("it has {size_bytes} bytes, and {} were announced", file.size_bytes);
                return Err(ArchiveError::entry(path, message));
            }
        }
        for (path, file) in &announced.files {
            let is_needed = needs_bytes(path, file.size_bytes, max_file_bytes);
            if is_needed && !file.is_stored && !self.is_zipped(path) {
                return Err(ArchiveError::entry(
                    path,
                    "it was announced as a new file, and the zip lacks it",
                ));
            }
        }
        Ok(())
    }

    /// Returns all files, by path.
    pub(super) fn list(&self) -> Vec<ZipFile<'_>> {
        let Some(announced) = &self.announced else {
            return self.zip.iter().flat_map(Archive::files).collect();
        };
        let files = announced.files.iter();
        files.map(|(path, file)| ZipFile { path, size_bytes: file.size_bytes }).collect()
    }

    /// Returns whether the site has a file.
    pub(super) fn contains(&self, path: &str) -> bool {
        self.is_zipped(path) || self.announced_file(path).is_some()
    }

    /// Returns the size of a file.
    pub(super) fn size_bytes(&self, path: &str) -> Result<u64, ArchiveError> {
        match (self.announced_file(path), &self.zip) {
            (Some(file), _) => Ok(file.size_bytes),
            (None, Some(zip)) => zip.size_bytes(path),
            (None, None) => Err(missing(path)),
        }
    }

    /// Returns the bytes of a file, or `None` if it has more than `max_bytes`.
    pub(super) fn read(&mut self, path: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, ArchiveError> {
        let file = self.announced_file(path);
        if let Some(zip) = self.zip.as_mut().filter(|zip| zip.contains(path)) {
            let bytes = zip.read(path, max_bytes)?;
            if let (Some(bytes), Some(file)) = (&bytes, file) {
                check_digest(path, file, Sha256::digest(bytes).into())?;
            }
            return Ok(bytes);
        }
        match (&self.announced, file) {
            (Some(_), Some(file)) if file.size_bytes > max_bytes => Ok(None),
            (Some(announced), Some(file)) if file.is_stored => {
                announced.read(file).map(Some).map_err(ArchiveError::Disk)
            }
            _ => Err(missing(path)),
        }
    }

    /// Returns digest and bytes of a file that is served unchanged. Those of a zip are inflated into the spool.
    pub(super) fn copy(
        &mut self,
        path: &str,
        spool: &mut Spool,
    ) -> Result<([u8; 32], Contents), ArchiveError> {
        let file = self.announced_file(path);
        let Some(zip) = self.zip.as_mut().filter(|zip| zip.contains(path)) else {
            // A digest alone is no proof that the caller has the bytes.
            let file = file.filter(|file| file.is_stored).ok_or_else(|| missing(path))?;
            return Ok((file.sha256, Contents::Stored(file.size_bytes)));
        };
        let from = spool.size();
        let mut output = Digesting { sha256: Sha256::new(), output: &mut *spool };
        zip.copy(path, &mut output)?;
        let sha256 = output.sha256.finalize().into();
        if let Some(file) = file {
            check_digest(path, file, sha256)?;
        }
        Ok((sha256, Contents::Spooled(spool.span_from(from))))
    }

    /// Returns digest and bytes of an announced file whose `bytes` were read, so that they can be retained. Returns `None`
    /// for a deploy without announced files.
    pub(super) fn original(
        &self,
        path: &str,
        bytes: &[u8],
        spool: &mut Spool,
    ) -> io::Result<Option<([u8; 32], Contents)>> {
        let Some(file) = self.announced_file(path) else { return Ok(None) };
        let contents = if file.is_stored {
            Contents::Stored(file.size_bytes)
        } else {
            Contents::Spooled(spool.push(bytes)?)
        };
        Ok(Some((file.sha256, contents)))
    }

    fn is_zipped(&self, path: &str) -> bool {
        self.zip.as_ref().is_some_and(|zip| zip.contains(path))
    }

    fn announced_file(&self, path: &str) -> Option<AnnouncedFile> {
        self.announced.as_ref()?.files.get(path).copied()
    }
}

fn missing(path: &str) -> ArchiveError {
    ArchiveError::entry(path, "it is missing")
}

fn check_digest(path: &str, file: AnnouncedFile, sha256: [u8; 32]) -> Result<(), ArchiveError> {
    if file.sha256 == sha256 {
        return Ok(());
    }
    Err(ArchiveError::entry(path, "its bytes differ from the `sha256` that was announced"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_digest_without_stored_bytes_is_no_proof_of_having_them() {
        let file = AnnouncedFile { sha256: [1; 32], size_bytes: 10, is_stored: false, downloaded: None };
        let never_served = ".aws/a.html".to_owned();
        let announced =
            AnnouncedFiles { files: BTreeMap::from([(never_served, file)]), spool: Spool::new().unwrap() };
        let limits = FileLimits { max_files: 1, max_file_bytes: 100 };
        let mut files =
            SiteFiles::open(SiteSources { zip: None, announced: Some(announced) }, limits).unwrap();
        let copied = files.copy(".aws/a.html", &mut Spool::new().unwrap()).unwrap_err().to_string();
        assert_eq!(copied, "entry `.aws/a.html`: it is missing");
        assert_eq!(files.read(".aws/a.html", 10).unwrap_err().to_string(), copied);
        assert!(files.read(".aws/a.html", 9).unwrap().is_none(), "too large to be read");
    }
}
