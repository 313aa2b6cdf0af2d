//! The error of rejected settings. Its text names the line to change.

use std::path::PathBuf;

/// A rejected setting. The text doesn't repeat the value of a setting that accepts any text: it may be a secret.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The built-in default file is invalid, which is a bug of the program.
    #[error("the built-in defaults: {reason}")]
    Defaults { reason: String },
    /// The settings file can't be read or parsed.
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    /// A `--set` entry that isn't `section.key=value`.
    #[error("--set {entry}: expected section.key=value")]
    Form { entry: String },
    /// The key doesn't exist.
    #[error("{origin}: unknown key `{key}`{}", hint(suggestion.as_deref()))]
    Unknown {
        /// The file, variable or option that sets the key.
        origin: String,
        /// The key's full path.
        key: String,
        /// The most similar key that exists.
        suggestion: Option<String>,
    },
    /// The key existed in an earlier release and has another name now.
    #[error("{origin}: `{key}` is now called `{new}`")]
    Renamed {
        /// The file, variable or option that sets the key.
        origin: String,
        /// The old name, as a full path.
        key: String,
        /// The new name, as a full path.
        new: String,
    },
    /// A value of the wrong type or outside its bounds.
    #[error("{origin}: `{key}`: {reason}")]
    Value {
        /// The file, variable or option that sets the value.
        origin: String,
        /// The key's full path.
        key: String,
        /// The expected form.
        reason: String,
    },
    /// A secret and the file with that secret are both set.
    #[error("`{key}` ({key_origin}) and `{file_key}` ({file_origin}) are both set: remove one of them")]
    Both {
        /// The secret's full path.
        key: String,
        /// The file, variable or option that sets it.
        key_origin: String,
        /// The full path of the key that names the file.
        file_key: String,
        /// The file, variable or option that sets it.
        file_origin: String,
    },
    /// The file of a secret can't be used. Its text is not part of the error.
    #[error("{origin}: `{key}`: {path}: {reason}")]
    SecretFile {
        /// The file, variable or option that names the file.
        origin: String,
        /// The full path of the key that names it.
        key: String,
        /// The file.
        path: String,
        /// Why it can't be used.
        reason: String,
    },
    /// Settings that would make an installation unsafe, all at once.
    #[error("refused to start, because these settings are not safe:{}", list(problems))]
    Insecure {
        /// One sentence each.
        problems: Vec<String>,
    },
}

fn list(problems: &[String]) -> String {
    problems.iter().map(|problem| format!("\n- {problem}")).collect()
}

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map(|key| format!(", did you mean `{key}`?")).unwrap_or_default()
}
