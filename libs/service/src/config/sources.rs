//! The sources of settings besides the defaults.

use std::path::PathBuf;

/// The prefix of every environment variable that is a setting.
pub const ENVIRONMENT_PREFIX: &str = "WEBRUNTIME_";

/// The standard OpenTelemetry variable that turns OTLP on.
pub(super) const OTLP_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The sources of settings besides the defaults, weakest first.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A TOML file with any subset of the default file's keys.
    pub file: Option<PathBuf>,
    /// Environment variables. Those without [`ENVIRONMENT_PREFIX`] are ignored.
    pub environment: Vec<(String, String)>,
    /// `section.key=value` entries, the strongest source.
    pub set: Vec<String>,
    /// Ignores sections of the file that the program doesn't have, as those of the other sources. For programs that take the
    /// settings file of another one.
    pub skips_unknown_sections: bool,
}

impl Sources {
    /// Returns the given file and `--set` list with this process's environment.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where settings are read from the environment")]
    pub fn from_process(file: Option<PathBuf>, set: Vec<String>) -> Self {
        let environment = std::env::vars()
            .filter(|(name, _)| name.starts_with(ENVIRONMENT_PREFIX) || name == OTLP_VARIABLE);
        Self { file, environment: environment.collect(), set, skips_unknown_sections: false }
    }
}
