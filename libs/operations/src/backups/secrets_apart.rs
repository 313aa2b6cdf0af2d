//! Keeps master keys, peppers and other secrets out of the backup folder: a thief of a backup must not find what opens it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::file_list::files_below;
use super::folder::BLOBS;
use super::installation::Secrets;

/// A file with a secret is small. Data files that happen to be small are searched, too.
const MAX_BYTES: u64 = 16 * 1024;
/// Shorter texts occur by chance.
const MIN_SECRET_BYTES: usize = 16;

/// Which files are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// All but the blobs, which this program alone writes, and of which there may be millions.
    WithoutBlobs,
    All,
}

/// Fails if a file of a secret is below the folder, or if a file of the folder holds a secret.
pub(super) fn check(folder: &Path, secrets: &Secrets, search: Search) -> Result<()> {
    let root = folder.canonicalize()?;
    for file in &secrets.files {
        let file = file.canonicalize().unwrap_or_else(|_| file.clone());
        if file.starts_with(&root) {
            bail!(
                "the secret {} is inside the backup folder {}: a thief of the backup could open it; move one of them",
                file.display(),
                root.display()
            );
        }
    }
    let texts = texts(secrets);
    if let Some(path) = find_file_with(&root, &texts, search)? {
        bail!(
            "{} holds a secret of this installation: delete the file, and keep the master key and the pepper apart from backups",
            path.display()
        );
    }
    Ok(())
}

/// Returns the texts to look for: each master key and pepper by itself, and the content of each file.
fn texts(secrets: &Secrets) -> Vec<Vec<u8>> {
    let keys = secrets.master_key.split(',').map(|entry| entry.rsplit(':').next().unwrap_or(entry));
    let settings = keys.chain(secrets.key_pepper.split(','));
    let mut texts: Vec<Vec<u8>> = settings.map(|text| text.trim().as_bytes().to_vec()).collect();
    texts.extend(secrets.files.iter().filter_map(|file| Some(fs::read(file).ok()?.trim_ascii().to_vec())));
    texts.retain(|text| text.len() >= MIN_SECRET_BYTES);
    texts.sort();
    texts.dedup();
    texts
}

fn find_file_with(root: &Path, texts: &[Vec<u8>], search: Search) -> Result<Option<PathBuf>> {
    for path in files_below(root)? {
        if search == Search::WithoutBlobs && path.starts_with(root.join(BLOBS)) {
            continue;
        }
        // A file may disappear meanwhile: pgBackRest writes to its folder at any time.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if !metadata.is_file() || metadata.len() > MAX_BYTES {
            continue;
        }
        let Ok(bytes) = fs::read(&path) else { continue };
        if texts.iter().any(|text| contains(&bytes, text)) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9";

    fn secrets(files: Vec<PathBuf>) -> Secrets {
        Secrets { master_key: format!("2027:{KEY}"), key_pepper: "8d2f0c5b7a914e63".into(), files }
    }

    #[test]
    fn a_key_in_any_file_is_found_also_in_capitals() {
        let folder = tempfile::tempdir().unwrap();
        let nested = folder.path().join("postgres/notes");
        fs::create_dir_all(&nested).unwrap();
        check(folder.path(), &secrets(vec![]), Search::All).unwrap();
        for content in
            [KEY.to_owned(), format!("key={}\n", KEY.to_uppercase()), "x8d2f0c5b7a914e63".to_owned()]
        {
            fs::write(nested.join("a"), &content).unwrap();
            let error = check(folder.path(), &secrets(vec![]), Search::WithoutBlobs).unwrap_err().to_string();
            assert!(error.contains("notes/a") && !error.contains(KEY), "{error}");
        }
    }

    #[test]
    fn a_secrets_folder_inside_is_refused_also_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("secrets")).unwrap();
        let file = folder.path().join("secrets/redis_password");
        fs::write(&file, "short").unwrap();
        let outside = tempfile::tempdir().unwrap();
        let link = outside.path().join("redis_password");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for path in [file, link] {
            let error = check(folder.path(), &secrets(vec![path]), Search::All).unwrap_err();
            assert!(error.to_string().contains("inside the backup folder"), "{error}");
        }
    }

    #[test]
    fn the_text_of_a_secrets_file_is_found() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = outside.path().join("edge_token");
        fs::write(&file, "the-token-of-the-edge\n").unwrap();
        fs::write(folder.path().join("copy.txt"), "the-token-of-the-edge").unwrap();
        assert!(check(folder.path(), &secrets(vec![file]), Search::All).is_err());
    }
}
