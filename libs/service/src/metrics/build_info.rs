//! Which program this is.

use super::instruments::Gauge;

/// The version of all programs of this release.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

static BUILD_INFO: Gauge =
    Gauge::new("webruntime_build_info", "Always 1. Its labels say what was built: version and commit.");

/// The commit that was built, if the build knows it.
fn commit() -> &'static str {
    option_env!("BUILD_COMMIT").unwrap_or("unknown")
}

pub(super) fn record() {
    BUILD_INFO.set(1.0, &[("version", VERSION), ("commit", commit())]);
}

#[cfg(test)]
mod tests {
    use crate::metrics::{declare, render};

    #[test]
    fn the_version_is_a_label() {
        declare(&[]);
        let line = format!("version=\"{}\"}} 1\n", super::VERSION);
        assert!(render().lines().any(|one| format!("{one}\n").ends_with(&line)), "{}", render());
    }
}
