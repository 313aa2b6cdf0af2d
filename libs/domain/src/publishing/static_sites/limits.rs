//! Limits of a deployed site.

use crate::plans::Plan;

/// Maximum size of a zip.
pub const ZIP_BYTES_MAX: i64 = 100 << 20;
/// Maximum number of entries of a zip, those that are never served included: each takes memory while it is read or written.
pub const ZIP_ENTRIES_MAX: u64 = 40_000;
/// Maximum size of the unpacked files.
pub const UNPACKED_BYTES_MAX: u64 = 500 << 20;

/// Returns the maximum number of files in a zip: 2,000 on the free plan and in trials, 20,000 on paid plans. Files that
/// are never served don't count.
pub fn max_files(plan: Plan) -> usize {
    match plan {
        Plan::Free => 2_000,
        Plan::Pro | Plan::Scale => 20_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_match_the_documentation() {
        assert_eq!(Plan::ALL.map(max_files), [2_000, 20_000, 20_000]);
        assert_eq!((ZIP_BYTES_MAX, UNPACKED_BYTES_MAX), (104_857_600, 524_288_000));
    }
}
