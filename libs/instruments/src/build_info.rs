//! Which program this is.

use crate::metrics::BUILD_INFO;

/// The version of all programs of this release.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that was built, if the build knows it.
fn commit() -> &'static str {
    option_env!("BUILD_COMMIT").unwrap_or("unknown")
}

pub(crate) fn record() {
    BUILD_INFO.set(1.0, &[("version", VERSION), ("commit", commit())]);
}

#[cfg(test)]
mod tests {
    use crate::{declare, render};

    #[test]
    fn the_version_is_a_label() {
        declare(&[]);
        let line = format!("version=\"{}\"}} 1\n", super::VERSION);
        assert!(render().lines().any(|one| format!("{one}\n").ends_with(&line)), "{}", render());
    }
}
