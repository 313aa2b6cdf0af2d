//! The limit of open files (`RLIMIT_NOFILE`), which also bounds connections. Systems start programs with a low soft limit,
//! for programs that use `select`, and let them raise it up to the hard limit.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit of open files to `wanted`, or as far as the hard limit allows. Returns the limit that applies
/// now. A higher limit stays as it is.
pub fn raise_limit(wanted: u64) -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current.unwrap_or(u64::MAX);
    let raised = wanted.min(limit.maximum.unwrap_or(u64::MAX));
    if raised <= before {
        return before;
    }
    limit.current = Some(raised);
    match setrlimit(Resource::Nofile, limit) {
        Ok(()) => raised,
        Err(error) => {
            tracing::warn!(%error, limit = before, wanted = raised, "can't raise the limit of open files");
            before
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_the_hard_limit_allows_and_never_lowered() {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(1 << 20);
        let before = raise_limit(0);
        assert!(before >= 3, "a program has standard streams");
        assert_eq!(raise_limit(hard), hard);
        assert_eq!(raise_limit(hard.saturating_add(1)), hard);
        assert_eq!(raise_limit(3), hard);
    }
}
