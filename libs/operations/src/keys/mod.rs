//! Keys of the installation: which stored values need which of them, and their replacement.

mod keys_in_use;
mod pepper;
mod reseal;

pub use keys_in_use::KeysInUse;
pub use pepper::{PepperStatus, pepper_status};
pub use reseal::{ColumnOutcome, ResealStep, reseal_all};
