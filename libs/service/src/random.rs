//! The only source of randomness, for keys, ids and jitter. A test can seed it.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use uuid::Uuid;

/// Cryptographically secure randomness, or a reproducible sequence from a seed. Clones share one sequence.
#[derive(Clone, Debug)]
pub struct Rng(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Seeded(Arc<Mutex<StdRng>>),
}

impl Rng {
    /// A generator that the operating system seeds, and periodically reseeds. Suitable for secrets.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A generator for tests that returns the same values for the same seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Source::Seeded(Arc::new(Mutex::new(StdRng::seed_from_u64(seed)))))
    }

    /// Returns `N` random bytes.
    #[must_use]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// Returns a UUIDv7. Its first 48 bits are `now` in milliseconds, so ids sort by age.
    #[must_use]
    pub fn uuid_v7(&self, now: DateTime<Utc>) -> Uuid {
        let millis = u64::try_from(now.timestamp_millis()).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(millis, &self.bytes()).into_uuid()
    }

    /// Returns a uniformly distributed number from 0 (inclusive) to 1 (exclusive).
    #[must_use]
    pub fn fraction(&self) -> f64 {
        // A double between 0 and 1 has 53 significant bits.
        let bits = u64::from_le_bytes(self.bytes()) >> 11;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let fraction = bits as f64 / (1_u64 << 53) as f64;
        fraction
    }

    #[expect(clippy::disallowed_methods, reason = "the injected randomness comes from here")]
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
    fn a_seed_reproduces_its_values_and_the_system_does_not() {
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
    fn fractions_are_spread_over_the_unit_interval() {
        let rng = Rng::seeded(3);
        let drawn: Vec<f64> = (0..10_000).map(|_| rng.fraction()).collect();
        assert!(drawn.iter().all(|f| (0.0..1.0).contains(f)));
        let mean = drawn.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
