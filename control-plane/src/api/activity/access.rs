//! Who may read the log of changes.

use domain::restrictions::Restrictions;
use web::{Code, Problem};

use crate::call::Call;

/// Returns 403 to a key that is restricted in any way: the log names resources of every kind, also those that are gone.
pub(super) fn check_unrestricted<S>(call: &Call<S>) -> Result<(), Problem> {
    if *call.restrictions() == Restrictions::default() {
        return Ok(());
    }
    let detail = "the log of changes is about the whole account, and this API key is restricted";
    Err(Problem::new(Code::InsufficientScope, detail).hint("use a key without folderId and resourceIds"))
}
