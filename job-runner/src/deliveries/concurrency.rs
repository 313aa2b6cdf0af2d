//! Limits the attempts in flight, in total and for each webhook (AIMD: additive increase, multiplicative decrease). The
//! state belongs to this process and lives in memory, because only throughput depends on it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::concurrency::{self, Delay, ResponseSpeed};
use store::deliveries::ClaimLimit;
use tokio::sync::Notify;
use uuid::Uuid;

/// Number of further webhooks that are tracked before fast webhooks without an attempt in flight are evicted.
const EVICTION_STEP: usize = 1_000;
/// Maximum number of slow webhooks that survive an eviction.
const MAX_SLOW: usize = 2_000;

/// The concurrency limiter. Clones share its state.
#[derive(Clone)]
pub(crate) struct ConcurrencyLimiter(Arc<Shared>);

struct Shared {
    max_total: u32,
    max_per_webhook: u32,
    tracked: Mutex<Tracked>,
    available: Notify,
}

#[derive(Default)]
struct Tracked {
    in_flight: u32,
    /// Of those, attempts at slow webhooks.
    in_flight_slow: u32,
    webhooks: HashMap<Uuid, Webhook>,
    /// The number of webhooks that triggers the next eviction.
    capacity: usize,
    /// Number of attempts started so far.
    started: u64,
}

struct Webhook {
    in_flight: u32,
    limit: u32,
    /// Whether its last attempt was slow.
    is_slow: bool,
    /// How long the last delivery was overdue when its attempt began.
    delay: Duration,
    /// The value of [`Tracked::started`] at its last attempt.
    last_started: u64,
}

impl Webhook {
    const NEW: Self = Self {
        in_flight: 0,
        limit: concurrency::INITIAL,
        is_slow: false,
        delay: Duration::ZERO,
        last_started: 0,
    };
}

impl Tracked {
    /// Evicts webhooks without an attempt in flight. Slow ones are retained, because each would start with several
    /// permits again; of too many slow ones, the half that was called longest ago is evicted.
    fn evict(&mut self) {
        self.webhooks.retain(|_, webhook| webhook.in_flight > 0 || webhook.is_slow);
        if self.webhooks.len() > MAX_SLOW {
            let mut order: Vec<_> = self.webhooks.values().map(|webhook| webhook.last_started).collect();
            let half = order.len() / 2;
            let (_, median, _) = order.select_nth_unstable(half);
            let median = *median;
            self.webhooks.retain(|_, webhook| webhook.in_flight > 0 || webhook.last_started >= median);
        }
        self.capacity = self.webhooks.len() + EVICTION_STEP;
    }
}

/// The permit of one attempt: counts for its webhook until the response, and in total until it is dropped.
pub(crate) struct AttemptPermit {
    limiter: ConcurrencyLimiter,
    webhook_id: Uuid,
    /// Whether the webhook was slow when this attempt started.
    is_slow: bool,
    has_responded: bool,
}

impl ConcurrencyLimiter {
    pub(crate) fn new(max_total: u32, max_per_webhook: u32) -> Self {
        Self(Arc::new(Shared {
            max_total,
            max_per_webhook,
            tracked: Mutex::new(Tracked { capacity: EVICTION_STEP, ..Tracked::default() }),
            available: Notify::new(),
        }))
    }

    /// Returns how many more attempts may start in total.
    pub(crate) fn available(&self) -> u32 {
        self.0.max_total.saturating_sub(self.tracked().in_flight)
    }

    /// Returns how many deliveries to claim for each of these webhooks, at most `max` in total. The total is divided
    /// evenly, in order, between the webhooks that may start an attempt.
    pub(crate) fn claim_limits(&self, webhooks: impl Iterator<Item = Uuid>, max: u32) -> Vec<ClaimLimit> {
        let tracked = self.tracked();
        let mut available_slow = self.0.available_slow(&tracked);
        let candidates = webhooks.filter_map(|id| {
            let webhook = tracked.webhooks.get(&id).unwrap_or(&Webhook::NEW);
            let mut available = self.0.available_at(webhook);
            if webhook.is_slow {
                available = available.min(available_slow);
                available_slow -= available;
            }
            (available > 0).then_some((id, available))
        });
        let candidates: Vec<_> = candidates.collect();
        let (mut left, mut others) = (max, u32::try_from(candidates.len()).unwrap_or(u32::MAX));
        let shares = candidates.into_iter().map(|(webhook_id, available)| {
            let share = available.min(left.div_ceil(others));
            (left, others) = (left - share, others - 1);
            ClaimLimit { webhook_id, limit: i32::try_from(share).unwrap_or(i32::MAX) }
        });
        shares.filter(|limit| limit.limit > 0).collect()
    }

    /// Acquires a permit unconditionally: the caller has claimed no more than [`Self::claim_limits`] allowed.
    pub(crate) fn acquire(&self, webhook_id: Uuid) -> AttemptPermit {
        let mut tracked = self.tracked();
        if tracked.webhooks.len() >= tracked.capacity {
            tracked.evict();
        }
        tracked.started += 1;
        let started = tracked.started;
        let webhook = tracked.webhooks.entry(webhook_id).or_insert(Webhook::NEW);
        (webhook.in_flight, webhook.last_started) = (webhook.in_flight + 1, started);
        let is_slow = webhook.is_slow;
        tracked.in_flight += 1;
        tracked.in_flight_slow += u32::from(is_slow);
        AttemptPermit { limiter: self.clone(), webhook_id, is_slow, has_responded: false }
    }

    /// Waits until half of a webhook's permits, or a quarter of the total, have become available since the last wait.
    pub(crate) async fn wait_available(&self) {
        self.0.available.notified().await;
    }

    fn tracked(&self) -> MutexGuard<'_, Tracked> {
        self.0.tracked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn available_at(&self, webhook: &Webhook) -> u32 {
        webhook.limit.min(self.max_per_webhook).saturating_sub(webhook.in_flight)
    }

    fn available_slow(&self, tracked: &Tracked) -> u32 {
        (self.max_total / 2).max(1).saturating_sub(tracked.in_flight_slow)
    }
}

impl AttemptPermit {
    /// Adjusts the webhook's limit to the response's speed and releases the webhook's share of the permit. The attempt
    /// took `elapsed` and began when its delivery was overdue for `delay`.
    pub(crate) fn record_response(&mut self, speed: ResponseSpeed, elapsed: Duration, delay: Duration) {
        let mut tracked = self.limiter.tracked();
        if let Some(webhook) = tracked.webhooks.get_mut(&self.webhook_id) {
            let delays = Delay { previous: webhook.delay, current: delay, elapsed };
            let max = self.limiter.0.max_per_webhook;
            webhook.limit = concurrency::next_limit(webhook.limit, speed, delays, max);
            (webhook.is_slow, webhook.delay) = (speed.is_slow(), delay);
        }
        drop(tracked);
        self.release_webhook();
    }

    fn release_webhook(&mut self) {
        if std::mem::replace(&mut self.has_responded, true) {
            return;
        }
        let mut tracked = self.limiter.tracked();
        tracked.in_flight_slow = tracked.in_flight_slow.saturating_sub(u32::from(self.is_slow));
        let Some(webhook) = tracked.webhooks.get_mut(&self.webhook_id) else { return };
        webhook.in_flight = webhook.in_flight.saturating_sub(1);
        let is_half_available = webhook.in_flight * 2 <= webhook.limit;
        drop(tracked);
        // Not for each single permit, because deliveries are claimed in batches.
        if is_half_available {
            self.limiter.0.available.notify_one();
        }
    }
}

impl Drop for AttemptPermit {
    fn drop(&mut self) {
        self.release_webhook();
        let mut tracked = self.limiter.tracked();
        tracked.in_flight = tracked.in_flight.saturating_sub(1);
        let is_quarter_available = tracked.in_flight <= self.limiter.0.max_total / 4 * 3;
        drop(tracked);
        if is_quarter_available {
            self.limiter.0.available.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);
    const BRIEF: Duration = Duration::from_millis(1);

    fn limit_of(limiter: &ConcurrencyLimiter, webhook: Uuid) -> i32 {
        limiter.claim_limits([webhook].into_iter(), u32::MAX).first().map_or(0, |limit| limit.limit)
    }

    #[test]
    fn a_webhook_starts_with_a_low_limit_and_each_fast_response_raises_it_by_one() {
        let limiter = ConcurrencyLimiter::new(100, 6);
        let permits: Vec<_> = (0..4).map(|_| limiter.acquire(ONE)).collect();
        assert_eq!((limit_of(&limiter, ONE), limit_of(&limiter, OTHER), limiter.available()), (0, 4, 96));
        permits.into_iter().for_each(|mut permit| permit.record_response(ResponseSpeed::Fast, BRIEF, BRIEF));
        assert_eq!((limit_of(&limiter, ONE), limiter.available()), (6, 100), "up to the maximum per webhook");
    }

    #[test]
    fn webhooks_that_hang_get_one_permit_each_and_half_of_the_total_together() {
        let limiter = ConcurrencyLimiter::new(8, 64);
        let slow: Vec<Uuid> = (10..20).map(Uuid::from_u128).collect();
        for id in &slow {
            for _ in 0..2 {
                limiter.acquire(*id).record_response(ResponseSpeed::Hanging, BRIEF, BRIEF);
            }
        }
        let limits = limiter.claim_limits(slow.iter().copied(), 64);
        assert!(limits.iter().all(|limit| limit.limit == 1), "{limits:?}");
        assert_eq!(limits.len(), 4, "within one claim as well");
        let _in_flight: Vec<_> = slow[..4].iter().map(|id| limiter.acquire(*id)).collect();
        let limits = (limit_of(&limiter, slow[4]), limit_of(&limiter, ONE), limiter.available());
        assert_eq!(limits, (0, 4, 4));
    }

    #[test]
    fn the_total_is_divided_between_the_webhooks_that_wait() {
        let limiter = ConcurrencyLimiter::new(100, 64);
        let limits = limiter.claim_limits([ONE, OTHER].into_iter(), 4);
        assert_eq!(limits.iter().map(|limit| limit.limit).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(limiter.claim_limits([ONE, OTHER].into_iter(), 1).len(), 1);
        let _permits: Vec<_> = (0..4).map(|_| limiter.acquire(ONE)).collect();
        let limits = limiter.claim_limits([ONE, OTHER].into_iter(), 4);
        assert_eq!(limits[0].limit, 4, "a webhook at its limit gets no share");
    }

    #[test]
    fn a_response_releases_the_webhooks_permit_before_the_result_is_stored() {
        let limiter = ConcurrencyLimiter::new(8, 1);
        let mut permit = limiter.acquire(ONE);
        assert_eq!(limit_of(&limiter, ONE), 0);
        permit.record_response(ResponseSpeed::Fast, BRIEF, BRIEF);
        assert_eq!((limit_of(&limiter, ONE), limiter.available()), (1, 7));
    }

    #[test]
    fn a_total_of_one_permit_is_available_to_slow_and_other_webhooks() {
        let limiter = ConcurrencyLimiter::new(1, 1);
        limiter.acquire(ONE).record_response(ResponseSpeed::Hanging, BRIEF, BRIEF);
        assert_eq!((limit_of(&limiter, ONE), limit_of(&limiter, OTHER)), (1, 1));
    }

    #[test]
    fn slow_webhooks_survive_an_eviction_caused_by_many_others() {
        let limiter = ConcurrencyLimiter::new(100, 64);
        let slow: Vec<Uuid> = (0..1_500).map(|number| Uuid::from_u128(1 << 64 | number)).collect();
        for id in &slow {
            limiter.acquire(*id).record_response(ResponseSpeed::Hanging, BRIEF, BRIEF);
        }
        (0..10_000).for_each(|number| {
            limiter.acquire(Uuid::from_u128(number)).record_response(ResponseSpeed::Fast, BRIEF, BRIEF);
        });
        let webhooks = &limiter.tracked().webhooks;
        let slow_count = webhooks.values().filter(|webhook| webhook.is_slow).count();
        assert_eq!((slow_count, webhooks.len() <= slow.len() + EVICTION_STEP), (slow.len(), true));
    }

    #[test]
    fn of_too_many_slow_webhooks_the_most_recently_called_are_retained() {
        let limiter = ConcurrencyLimiter::new(100, 64);
        let _in_flight = limiter.acquire(ONE);
        let slow = (2..100_000).map(Uuid::from_u128);
        slow.for_each(|id| limiter.acquire(id).record_response(ResponseSpeed::Hanging, BRIEF, BRIEF));
        let webhooks = &limiter.tracked().webhooks;
        assert!((MAX_SLOW / 2..=MAX_SLOW + EVICTION_STEP).contains(&webhooks.len()), "{}", webhooks.len());
        let is_tracked = |id| webhooks.contains_key(&Uuid::from_u128(id));
        assert!(is_tracked(99_999) && is_tracked(99_000) && is_tracked(1) && !is_tracked(2));
    }

    #[test]
    fn a_permit_dropped_without_a_response_is_released() {
        let limiter = ConcurrencyLimiter::new(1, 1);
        drop(limiter.acquire(ONE));
        assert_eq!((limiter.available(), limit_of(&limiter, ONE)), (1, 1));
    }
}
