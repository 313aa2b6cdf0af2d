//! The one source of randomness: keys, ids and jitter come from here, so that a test can seed them.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use uuid::Uuid;

/// Cryptographically strong randomness, or the same sequence for the same seed.
///
/// Clones draw from one sequence.
#[derive(Clone, Debug)]
pub struct Rng(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Seeded(Arc<Mutex<StdRng>>),
}

impl Rng {
    /// Seeded by the operating system and reseeded as it goes; fit for secrets.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// The same values for the same seed, for tests.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Source::Seeded(Arc::new(Mutex::new(StdRng::seed_from_u64(seed)))))
    }

    /// `N` random bytes.
    #[must_use]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// A time-ordered id: its first 48 bits are `now` in milliseconds, so that it sorts by age.
    #[must_use]
    pub fn uuid_v7(&self, now: DateTime<Utc>) -> Uuid {
        let millis = u64::try_from(now.timestamp_millis()).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(millis, &self.bytes()).into_uuid()
    }

    /// A number from 0 (inclusive) to 1 (exclusive), evenly spread.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        // 53 bits are all a double holds between 0 and 1.
        let bits = u64::from_le_bytes(self.bytes()) >> 11;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let fraction = bits as f64 / (1_u64 << 53) as f64;
        fraction
    }

    #[expect(clippy::disallowed_methods, reason = "this is where the handed-in randomness comes from")]
    fn fill(&self, bytes: &mut [u8]) {
        match &self.0 {
            Source::System => rand::rng().fill_bytes(bytes),
            Source::Seeded(rng) => rng.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_values_and_the_system_never_does() {
        assert_eq!(Rng::seeded(7).bytes::<32>(), Rng::seeded(7).bytes::<32>());
        assert_ne!(Rng::seeded(7).bytes::<32>(), Rng::seeded(8).bytes::<32>());
        assert_ne!(Rng::system().bytes::<32>(), Rng::system().bytes::<32>());
    }

    #[test]
    fn ids_are_version_seven_and_sort_by_time() {
        let rng = Rng::seeded(1);
        let early = rng.uuid_v7(DateTime::from_timestamp_millis(1_000).unwrap());
        let late = rng.uuid_v7(DateTime::from_timestamp_millis(1_001).unwrap());
        assert_eq!(early.get_version_num(), 7);
        assert!(early < late);
    }

    #[test]
    fn fractions_lie_in_the_unit_interval_and_spread() {
        let rng = Rng::seeded(3);
        let drawn: Vec<f64> = (0..10_000).map(|_| rng.fraction()).collect();
        assert!(drawn.iter().all(|f| (0.0..1.0).contains(f)));
        let mean = drawn.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
