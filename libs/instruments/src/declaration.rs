//! The start of a service's instruments.

use crate::instruments::Instrument;
use crate::{build_info, metrics};

/// Creates instruments at the start of a service: the lists of its own and of the crates that it uses.
pub fn declare(lists: &[&[&'static dyn Instrument]]) {
    build_info::record();
    for instrument in metrics::ALL.iter().chain(lists.iter().copied().flatten()) {
        instrument.create();
    }
}
