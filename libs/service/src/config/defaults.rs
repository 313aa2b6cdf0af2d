//! A service's default file and the former names of its keys.

/// Pairs of an old and a new key path, such as `("cache.host_bytes", "cache.max_host_bytes")`.
pub type RenamedKeys = [(&'static str, &'static str)];

/// A service's commented default file, and the keys that had another name in an earlier release.
///
/// ```
/// # use service::config::{Defaults, Sources, load};
/// # #[derive(Debug, serde::Deserialize)] struct Config { upstreams: toml::Table }
/// const DEFAULTS: Defaults = Defaults {
///     toml: "[upstreams]\nresponse_timeout = '60s'",
///     renamed_keys: &[("inner", "upstreams"), ("inner.answer_within", "upstreams.response_timeout")],
/// };
/// let sources = Sources { set: vec!["inner.answer_within=5s".into()], ..Sources::default() };
/// let error = load::<Config>(DEFAULTS, &sources).unwrap_err().to_string();
/// assert!(error.ends_with("`inner.answer_within` is now called `upstreams.response_timeout`"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// The default file. It serves as the manual, and its keys and types are the schema of every other source.
    /// A key `X_file` beside a text `X` marks a secret: it names a file with the value of `X`.
    pub toml: &'static str,
    /// Renamed keys and sections. An old path is refused with an error that names the new one, in the settings file,
    /// the environment and `--set` alike. The entry of a section, `("inner", "upstreams")`, covers all keys in it
    /// that have no entry of their own.
    pub renamed_keys: &'static RenamedKeys,
}

impl From<&'static str> for Defaults {
    fn from(toml: &'static str) -> Self {
        Self { toml, renamed_keys: &[] }
    }
}

impl Defaults {
    /// Returns the new path of a renamed key, or `None` if the key was not renamed.
    #[must_use]
    pub fn new_path(&self, old_path: &str) -> Option<String> {
        let sections = std::iter::successors(Some(old_path), |path| path.rfind('.').map(|end| &path[..end]));
        sections.into_iter().find_map(|section| {
            let (_, new) = self.renamed_keys.iter().find(|(old, _)| *old == section)?;
            Some(format!("{new}{}", &old_path[section.len()..]))
        })
    }
}
