//! Why settings were refused, told so that the reader knows which line to change.

use std::path::PathBuf;

/// A refused setting. Texts are not repeated where any text would do: they may be secrets.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The built-in default file is broken; a fault of the program's.
    #[error("the built-in defaults: {reason}")]
    Defaults {
        /// What is wrong with them.
        reason: String,
    },
    /// The settings file can't be read.
    #[error("{}: {reason}", path.display())]
    File {
        /// Its path as given.
        path: PathBuf,
        /// The system's or the parser's words.
        reason: String,
    },
    /// A `--set` that isn't `section.key=value`.
    #[error("--set {entry}: expected section.key=value")]
    Form {
        /// What stood before the first `=`, if any.
        entry: String,
    },
    /// No such key.
    #[error("{origin}: unknown key `{key}`{}", hint(suggestion.as_deref()))]
    Unknown {
        /// Where it was set.
        origin: String,
        /// Its full path.
        key: String,
        /// The nearest key that exists.
        suggestion: Option<String>,
    },
    /// A value of the wrong type or outside its bounds.
    #[error("{origin}: `{key}`: {reason}")]
    Value {
        /// Where it was set.
        origin: String,
        /// Its full path.
        key: String,
        /// What was expected.
        reason: String,
    },
}

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map(|key| format!(", did you mean `{key}`?")).unwrap_or_default()
}
