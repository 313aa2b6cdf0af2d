//! Limits of a deployed site.

use crate::plans::Plan;

pub use crate::deploys::{UNPACKED_BYTES_MAX, ZIP_BYTES_MAX};

/// Returns the maximum number of files in a zip: 2,000 on the free plan and in trials, 20,000 on paid plans.
pub fn max_files(plan: Plan) -> usize {
    match plan {
        Plan::Free => 2_000,
        Plan::Pro | Plan::Scale => 20_000,
    }
}

/// Returns the maximum size of the unpacked files: [`UNPACKED_BYTES_MAX`], and never more than is left of the plan's
/// storage. `None` stands for unlimited storage.
pub fn max_unpacked_bytes(storage_left: Option<u64>) -> u64 {
    storage_left.map_or(UNPACKED_BYTES_MAX, |left| left.min(UNPACKED_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_match_the_documentation() {
        assert_eq!(Plan::ALL.map(max_files), [2_000, 20_000, 20_000]);
        assert_eq!((ZIP_BYTES_MAX, UNPACKED_BYTES_MAX), (104_857_600, 524_288_000));
    }

    #[test]
    fn unpacked_files_fit_the_storage_left() {
        assert_eq!(max_unpacked_bytes(None), UNPACKED_BYTES_MAX);
        assert_eq!(max_unpacked_bytes(Some(0)), 0);
        assert_eq!(max_unpacked_bytes(Some(1_000)), 1_000);
        assert_eq!(max_unpacked_bytes(Some(u64::MAX)), UNPACKED_BYTES_MAX);
    }
}
