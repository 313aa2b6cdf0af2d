//! What a connection remembers: visitors ask one host, and one form, many things. It spares them the caches, which are
//! everybody's, and is believed until its time is up or anything of its kind was forgotten.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::forms;
use crate::sites::site_cache;

/// What one connection remembers.
#[derive(Default)]
pub(crate) struct Memory {
    /// The site it was last asked for.
    pub(crate) site: Option<site_cache::Remembered>,
    /// The form's page it was last asked for.
    pub(crate) form: Option<forms::Remembered>,
}

/// How often something of a kind was forgotten.
#[derive(Debug, Default)]
pub(crate) struct Generation(AtomicU64);

/// Until when something is believed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validity {
    pub(crate) until: Instant,
    pub(crate) as_of: u64,
}

impl Generation {
    /// To be read before what is going to be remembered: so nothing is that was forgotten meanwhile.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Something was forgotten.
    pub(crate) fn note(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether that is still believed.
    pub(crate) fn is_current(&self, belief: Validity, now: Instant) -> bool {
        belief.as_of == self.count() && now < belief.until
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_remembered_is_believed_until_its_time_or_until_something_is_forgotten() {
        let (forgotten, now) = (Generation::default(), Instant::now());
        let later = now + Duration::from_secs(1);
        let belief = Validity { until: later, as_of: forgotten.count() };
        assert!(forgotten.is_current(belief, now) && !forgotten.is_current(belief, later));
        forgotten.note();
        assert!(!forgotten.is_current(belief, now));
    }
}
