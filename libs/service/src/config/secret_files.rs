//! Secrets in files: a key `X_file` names a file with the value of `X`, as container runtimes mount secrets. Every default
//! file has such a key beside each secret, so the pairs need no list.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::config_error::Error;
use super::layers::Merged;
use super::secret_names::{SUFFIX, secrets_of};

/// No secret is longer; a larger file is another one.
const MAX_BYTES: u64 = 64 * 1024;
/// The permission bits "readable by others" and, of a folder, "passable by others".
const OTHERS_READ: u32 = 0o004;
const OTHERS_PASS: u32 = 0o001;
/// Container runtimes mount secrets here, often readable by all users of the container, which has just one.
const MOUNTED: &str = "/run/secrets";

/// What was found while reading.
#[derive(Default)]
pub(super) struct SecretFiles {
    /// For the log.
    pub(super) warnings: Vec<String>,
    pub(super) paths: Vec<PathBuf>,
}

/// Replaces each `X_file` by `X` with the file's text.
pub(super) fn read(defaults: &Table, merged: &mut Merged) -> Result<SecretFiles, Error> {
    let mut table = std::mem::take(&mut merged.table);
    let mut files = SecretFiles::default();
    let outcome = read_table(defaults, &mut table, &mut Vec::new(), merged, &mut files);
    merged.table = table;
    outcome.map(|()| files)
}

fn read_table(
    defaults: &Table,
    table: &mut Table,
    path: &mut Vec<String>,
    merged: &mut Merged,
    files: &mut SecretFiles,
) -> Result<(), Error> {
    // The operator chooses the keys of a section that is empty by default: every `X_file` in it stands for `X`.
    let is_open = defaults.is_empty();
    let secrets: Vec<String> = if is_open {
        table.keys().filter_map(|key| key.strip_suffix(SUFFIX)).map(str::to_owned).collect()
    } else {
        secrets_of(defaults).map(str::to_owned).collect()
    };
    for key in secrets {
        let file = match table.remove(&format!("{key}{SUFFIX}")) {
            Some(Value::String(file)) if !file.is_empty() => file,
            _ => continue,
        };
        let full = |key: &str| path.iter().map(String::as_str).chain([key]).collect::<Vec<_>>().join(".");
        let (key_path, file_path) = (full(&key), full(&format!("{key}{SUFFIX}")));
        let origin = merged.origin(&file_path).to_owned();
        let is_empty = table.get(&key).and_then(Value::as_str).is_some_and(str::is_empty);
        let is_set = table.contains_key(&key) && (is_open || merged.origins.contains_key(&key_path));
        if is_set && !is_empty {
            let key_origin = merged.origin(&key_path).to_owned();
            return Err(Error::Both { key: key_path, key_origin, file_key: file_path, file_origin: origin });
        }
        let (text, is_public) = read_secret(Path::new(&file)).map_err(|reason| Error::SecretFile {
            origin: origin.clone(),
            key: file_path.clone(),
            path: file.clone(),
            reason,
        })?;
        if is_public {
            files.warnings.push(format!(
                "`{file_path}`: every user of this machine may read {file}; allow its owner and group alone (chmod o= {file})"
            ));
        }
        files.paths.push(PathBuf::from(&file));
        merged.origins.insert(key_path, format!("{origin}: `{file_path}`"));
        table.insert(key, Value::String(text));
    }
    let no_defaults = Table::new();
    for (key, value) in table {
        let Value::Table(inner) = value else { continue };
        let defaults = match defaults.get(key) {
            Some(Value::Table(defaults)) => defaults,
            _ => &no_defaults,
        };
        path.push(key.clone());
        read_table(defaults, inner, path, merged, files)?;
        path.pop();
    }
    Ok(())
}

/// Returns the text of a file without newlines at its end, and whether every user may read it. The error says what is wrong
/// without the text.
fn read_secret(path: &Path) -> Result<(String, bool), String> {
    let wrong = |error: io::Error| error.to_string();
    let metadata = fs::metadata(path).map_err(wrong)?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    if metadata.len() > MAX_BYTES {
        return Err(format!("it has {} bytes, which no secret has", metadata.len()));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)).map_err(wrong)?;
    let text = String::from_utf8(bytes).map_err(|_not_utf8| "it is not text in UTF-8".to_owned())?;
    let text = text.trim_end_matches(['\n', '\r']);
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok((text.to_owned(), metadata.mode() & OTHERS_READ != 0 && is_reachable_by_others(path)))
}

fn is_reachable_by_others(path: &Path) -> bool {
    if path.starts_with(MOUNTED) {
        return false;
    }
    let Ok(path) = path.canonicalize() else { return true };
    let mut folders = path.ancestors().skip(1).filter_map(|folder| fs::metadata(folder).ok());
    folders.all(|folder| folder.mode() & OTHERS_PASS != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::atomic::{AtomicU32, Ordering};

    use secrecy::ExposeSecret as _;
    use serde::Deserialize;

    use super::super::{Secret, Sources, load};
    use super::*;

    const DEFAULTS: &str = "
        [secrets]
        key = ''
        key_file = ''
        ca_file = ''
        [store]
        url = 'postgres://localhost/web'
        url_file = ''
        [providers]
    ";

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Config {
        secrets: Secrets,
        store: Store,
        providers: Table,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Secrets {
        key: Secret,
        ca_file: PathBuf,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Store {
        url: String,
    }

    static COUNT: AtomicU32 = AtomicU32::new(1);

    /// A file that its owner alone may read. It is deleted on drop.
    struct SecretFile(PathBuf);

    impl SecretFile {
        fn new(text: impl AsRef<[u8]>, mode: u32) -> Self {
            let path = std::env::temp_dir().join(format!(
                "secret-{}-{}",
                std::process::id(),
                COUNT.fetch_add(1, Ordering::Relaxed)
            ));
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Self(path)
        }

        fn path(&self) -> &str {
            self.0.to_str().unwrap()
        }
    }

    impl Drop for SecretFile {
        fn drop(&mut self) {
            let _may_be_gone = fs::remove_file(&self.0);
        }
    }

    fn set(entries: &[&str]) -> Sources {
        Sources { set: entries.iter().map(ToString::to_string).collect(), ..Sources::default() }
    }

    fn environment(name: &str, value: &str) -> Sources {
        Sources { environment: vec![(name.to_owned(), value.to_owned())], ..Sources::default() }
    }

    fn error(sources: &Sources) -> String {
        load::<Config>(DEFAULTS, sources).unwrap_err().to_string()
    }

    #[test]
    fn a_secret_comes_from_a_file_that_any_source_names() {
        let secret = SecretFile::new("s3cret \n\r\n\n", 0o600);
        let settings = SecretFile::new(format!("[secrets]\nkey_file = {:?}\n", secret.path()), 0o644);
        for sources in [
            set(&[&format!("secrets.key_file={}", secret.path())]),
            environment("WEBRUNTIME_SECRETS__KEY_FILE", secret.path()),
            Sources { file: Some(settings.0.clone()), ..Sources::default() },
        ] {
            let loaded = load::<Config>(DEFAULTS, &sources).unwrap();
            assert_eq!(loaded.config.secrets.key.expose_secret(), "s3cret ", "only newlines are removed");
            assert!(loaded.base.telemetry.settings_warnings.is_empty());
        }
    }

    #[test]
    fn a_file_replaces_a_default() {
        let url = SecretFile::new("postgres://user:word@db/web\n", 0o640);
        let sources = environment("WEBRUNTIME_STORE__URL_FILE", url.path());
        let loaded = load::<Config>(DEFAULTS, &sources).unwrap();
        assert_eq!(loaded.config.store.url, "postgres://user:word@db/web");
    }

    #[test]
    fn other_keys_of_files_stay_paths() {
        let sources = set(&["secrets.ca_file=/no/such/file", "secrets.key=x", "secrets.key_file="]);
        let config = load::<Config>(DEFAULTS, &sources).unwrap().config;
        assert_eq!(config.secrets.ca_file, Path::new("/no/such/file"));
        assert_eq!(config.secrets.key.expose_secret(), "x");
    }

    #[test]
    fn a_section_of_the_operators_keys_may_name_files_too() {
        let secret = SecretFile::new("s3cret\n", 0o400);
        let entry = format!("providers.google.client_secret_file={}", secret.path());
        let config =
            load::<Config>(DEFAULTS, &set(&["providers.google.client_id=a", &entry])).unwrap().config;
        let google = config.providers.get("google").unwrap();
        assert_eq!(google.get("client_secret").unwrap().as_str(), Some("s3cret"));
        assert_eq!(google.as_table().unwrap().len(), 2);
        let text = error(&set(&["providers.google.client_secret=a", &entry]));
        assert!(text.contains("`providers.google.client_secret` ("), "{text}");
    }

    #[test]
    fn rejects_a_secret_and_its_file_at_once_and_names_both() {
        let secret = SecretFile::new("s3cret", 0o600);
        let mut sources = environment("WEBRUNTIME_SECRETS__KEY_FILE", secret.path());
        sources.set = vec!["secrets.key=hunter2".to_owned()];
        assert_eq!(
            error(&sources),
            "`secrets.key` (--set secrets.key) and `secrets.key_file` (WEBRUNTIME_SECRETS__KEY_FILE) are both set: remove \
             one of them"
        );
    }

    #[test]
    fn names_an_unusable_file_but_not_its_text() {
        let entry = |path: &str| set(&[&format!("secrets.key_file={path}")]);
        let missing = error(&entry("/no/such/secret"));
        assert!(
            missing.starts_with("--set secrets.key_file: `secrets.key_file`: /no/such/secret: No such file"),
            "{missing}"
        );
        let folder = error(&entry("/"));
        assert!(folder.ends_with("/: it is not a file"), "{folder}");
        for (text, reason) in [
            (b"\n \r\n".to_vec(), "it is empty"),
            (b"".to_vec(), "it is empty"),
            (b"hunter2\xff".to_vec(), "it is not text in UTF-8"),
            (vec![b'x'; 70_000], "it has 70000 bytes, which no secret has"),
        ] {
            let file = SecretFile::new(text, 0o600);
            let message = error(&entry(file.path()));
            assert!(message.ends_with(&format!("{}: {reason}", file.path())), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn warns_of_a_file_that_every_user_may_read() {
        let secret = SecretFile::new("hunter2", 0o644);
        let loaded =
            load::<Config>(DEFAULTS, &set(&[&format!("secrets.key_file={}", secret.path())])).unwrap();
        let warnings = loaded.base.telemetry.settings_warnings.join("\n");
        assert!(warnings.contains("`secrets.key_file`: every user of this machine may read"), "{warnings}");
        assert!(!warnings.contains("hunter2"), "{warnings}");
        assert!(is_reachable_by_others(&secret.0));
        assert!(!is_reachable_by_others(Path::new("/run/secrets/master_key")));
    }

    #[test]
    fn a_folder_that_others_cannot_enter_protects_its_files() {
        let folder = std::env::temp_dir().join(format!("secrets-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("key"), "x").unwrap();
        for (mode, expected) in [(0o755, true), (0o750, false)] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_reachable_by_others(&folder.join("key")), expected, "{mode:o}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_of_an_unknown_key_is_an_unknown_key() {
        let text = error(&environment("WEBRUNTIME_SECRETS__KEYS_FILE", "/x"));
        assert!(
            text.ends_with("unknown key `secrets.keys_file`, did you mean `secrets.key_file`?"),
            "{text}"
        );
        let text = error(&set(&["store.password_file=/x"]));
        assert!(text.contains("unknown key `store.password_file`"), "{text}");
    }
}
