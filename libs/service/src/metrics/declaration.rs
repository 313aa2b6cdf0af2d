//! The start of a service's instruments.

use super::build_info;
use super::instruments::Instrument;

/// Creates the instruments of a service at its start.
pub fn declare(instruments: &[&'static dyn Instrument]) {
    build_info::record();
    for instrument in instruments {
        instrument.create();
    }
}
