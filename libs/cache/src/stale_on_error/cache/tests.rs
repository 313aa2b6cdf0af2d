//! Expiry, single flight and the races between loads and invalidations. Time is an argument, and the test decides
//! when a load ends.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;

use futures::FutureExt as _;
use futures::channel::oneshot;
use proptest::prelude::*;

use super::*;

const MAX_AGE: Duration = Duration::from_secs(60);
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

type Outcome = Result<Served<u32>, &'static str>;

fn cache() -> StaleOnErrorCache<String, u32> {
    let bounds = Bounds { max_bytes: 1_000, max_age: MAX_AGE, retry_interval: RETRY_INTERVAL };
    StaleOnErrorCache::new(bounds, |_, _| 10)
}

fn key() -> String {
    "host/page".into()
}

/// Runs a call with a load that returns at once.
fn get(cache: &StaleOnErrorCache<String, u32>, now: Instant, loaded: Result<u32, &'static str>) -> Outcome {
    cache.get(&key(), now, async { loaded }).now_or_never().unwrap()
}

fn fresh(value: u32, hit: bool) -> Outcome {
    Ok(Served { value, stale: false, hit })
}

fn stale(value: u32) -> Outcome {
    Ok(Served { value, stale: true, hit: true })
}

#[test]
fn a_value_is_loaded_once_and_reloaded_after_it_expires() {
    let (cache, now) = (cache(), Instant::now());
    assert_eq!(get(&cache, now, Ok(1)), fresh(1, false));
    assert_eq!(get(&cache, now + MAX_AGE / 2, Ok(2)), fresh(1, true));
    assert_eq!(cache.peek("host/page", now + MAX_AGE / 2), Some(1));
    assert_eq!(cache.peek("host/page", now + MAX_AGE), None);
    assert_eq!(get(&cache, now + MAX_AGE, Ok(3)), fresh(3, false));
}

#[test]
fn returns_the_stale_value_when_a_reload_fails_and_retries_after_the_interval() {
    let (cache, now) = (cache(), Instant::now());
    assert_eq!(get(&cache, now, Err("down")), Err("down"));
    assert_eq!(get(&cache, now, Ok(1)), fresh(1, false));
    let later = now + MAX_AGE;
    assert_eq!(get(&cache, later, Err("down")), stale(1));
    assert_eq!(get(&cache, later + RETRY_INTERVAL / 2, Ok(2)), stale(1), "not retried yet");
    assert_eq!(get(&cache, later + RETRY_INTERVAL, Ok(2)), fresh(2, false));
}

#[test]
fn an_invalidated_value_is_served_only_if_its_reload_fails() {
    let (cache, now) = (cache(), Instant::now());
    get(&cache, now, Ok(1)).unwrap();
    cache.invalidate(&key());
    assert_eq!(cache.peek("host/page", now), None);
    assert_eq!(get(&cache, now, Err("down")), stale(1));
    cache.invalidate(&key());
    assert_eq!(get(&cache, now, Ok(2)), fresh(2, false), "a new invalidation ends the backoff");

    cache.invalidate_where(|key, _| key.starts_with("other/"));
    assert_eq!(get(&cache, now, Ok(3)), fresh(2, true));
    cache.invalidate_where(|key, value| key.starts_with("host/") && *value == 2);
    assert_eq!(get(&cache, now, Ok(3)), fresh(3, false));
}

#[test]
fn all_values_can_be_marked_stale_and_a_removed_one_is_never_served_stale() {
    let (cache, now) = (cache(), Instant::now());
    get(&cache, now, Ok(1)).unwrap();
    cache.mark_all_stale();
    assert_eq!(get(&cache, now, Err("down")), stale(1));
    assert_eq!(get(&cache, now + RETRY_INTERVAL, Ok(2)), fresh(2, false));
    cache.remove(&key());
    assert_eq!(get(&cache, now, Err("down")), Err("down"), "suspended pages are not served stale");
    get(&cache, now, Ok(3)).unwrap();
    cache.remove_where(|key, _| key.starts_with("host/"));
    assert_eq!(get(&cache, now, Err("down")), Err("down"));
}

#[test]
fn a_replaced_value_keeps_its_age_and_undoes_no_invalidation() {
    let (cache, now) = (cache(), Instant::now());
    assert!(!cache.replace_if(&key(), |_| true, 2), "no value is cached");
    get(&cache, now, Ok(1)).unwrap();
    assert!(!cache.replace_if(&key(), |cached| *cached == 7, 2), "another value is cached");
    assert!(cache.replace_if(&key(), |cached| *cached == 1, 2));
    assert_eq!(cache.peek_with_expiry("host/page", now), Some((2, now + MAX_AGE)));
    assert_eq!((cache.peek("host/page", now + MAX_AGE), cache.peek_stale("host/page")), (None, Some(2)));
    cache.invalidate(&key());
    assert!(cache.replace_if(&key(), |_| true, 3));
    assert_eq!(cache.peek("host/page", now), None, "still stale");
    cache.remove(&key());
    assert!(!cache.replace_if(&key(), |_| true, 4));
    assert_eq!(cache.peek_stale("host/page"), None);
}

#[test]
fn a_lower_age_limit_applies_to_cached_values_until_it_is_lifted() {
    let (cache, now) = (cache(), Instant::now());
    let (second, later) = (Duration::from_secs(1), now + Duration::from_secs(2));
    get(&cache, now, Ok(1)).unwrap();
    cache.limit_age(Some(second));
    assert_eq!(cache.peek("host/page", later), None);
    assert_eq!(cache.peek_with_expiry("host/page", now), Some((1, now + second)));
    assert_eq!(get(&cache, later, Err("down")), stale(1));
    assert_eq!(get(&cache, later + RETRY_INTERVAL, Ok(2)), fresh(2, false));
    cache.limit_age(Some(2 * MAX_AGE));
    assert_eq!(cache.max_age(), MAX_AGE, "a limit never raises the age");
    cache.limit_age(None);
    assert_eq!(cache.peek("host/page", later + MAX_AGE), Some(2));
}

#[test]
fn the_total_weight_is_bounded() {
    let (cache, now) = (cache(), Instant::now());
    for n in 0..1_000 {
        cache.get::<(), _>(&n.to_string(), now, async { Ok(n) }).now_or_never().unwrap().unwrap();
    }
    assert!(cache.weight_bytes() <= 1_000, "{}", cache.weight_bytes());
}

/// A pending call. Its load ends when the gate receives a message.
struct Call {
    outcome: Pin<Box<dyn Future<Output = Outcome>>>,
    gate: Option<oneshot::Sender<bool>>,
    /// The stored value when the call began: a fresh outcome can't be older.
    stored: u32,
}

impl Call {
    fn make(cache: &StaleOnErrorCache<String, u32>, store: &Rc<Cell<u32>>, now: Instant) -> Self {
        let (gate, opened) = oneshot::channel();
        let (cache, read) = (cache.clone(), Rc::clone(store));
        let outcome = Box::pin(async move {
            let load = async {
                // Reads first and returns late: the worst order for the cache.
                let value = read.get();
                if opened.await.unwrap_or(false) { Ok(value) } else { Err("down") }
            };
            cache.get(&key(), now, load).await
        });
        Self { outcome, gate: Some(gate), stored: store.get() }
    }

    fn poll(&mut self) -> Option<Outcome> {
        (&mut self.outcome).now_or_never()
    }
}

#[test]
fn concurrent_callers_of_a_key_share_one_load() {
    let (cache, now, store) = (cache(), Instant::now(), Rc::new(Cell::new(7)));
    let mut calls: Vec<_> = (0..5).map(|_| Call::make(&cache, &store, now)).collect();
    assert!(calls.iter_mut().all(|call| call.poll().is_none()));
    calls[0].gate.take().unwrap().send(true).unwrap();
    assert_eq!(calls[0].poll(), Some(fresh(7, false)));
    for call in &mut calls[1..] {
        assert_eq!(call.poll(), Some(fresh(7, true)), "without a load of its own");
    }
}

#[test]
fn the_next_caller_loads_after_a_cancelled_load_and_all_load_after_a_failed_one() {
    let (cache, now, store) = (cache(), Instant::now(), Rc::new(Cell::new(7)));
    let mut calls: Vec<_> = (0..4).map(|_| Call::make(&cache, &store, now)).collect();
    assert!(calls.iter_mut().all(|call| call.poll().is_none()));
    drop(calls.remove(0));
    assert!(calls.iter_mut().all(|call| call.poll().is_none()));
    calls[0].gate.take().unwrap().send(false).unwrap();
    assert_eq!(calls[0].poll(), Some(Err("down")));
    assert!(calls[1].poll().is_none() && calls[2].poll().is_none(), "each loads for itself");
    calls[2].gate.take().unwrap().send(true).unwrap();
    assert_eq!(calls[2].poll(), Some(fresh(7, false)), "the last caller does not wait for the one before");
}

#[test]
fn a_load_that_began_before_an_invalidation_never_makes_its_value_fresh() {
    for removed in [false, true] {
        let (cache, now, store) = (cache(), Instant::now(), Rc::new(Cell::new(1)));
        let mut call = Call::make(&cache, &store, now);
        assert!(call.poll().is_none());
        store.set(2);
        if removed {
            cache.remove(&key());
        } else {
            cache.invalidate(&key());
        }
        call.gate.take().unwrap().send(true).unwrap();
        assert_eq!(call.poll(), Some(fresh(1, false)), "the call began before the invalidation");
        assert_eq!(cache.peek("host/page", now), None);
        let during_outage = get(&cache, now, Err("down"));
        assert_eq!(during_outage, if removed { Err("down") } else { stale(1) });
    }
}

#[derive(Clone, Debug)]
enum Step {
    Call,
    End { which: usize, succeeds: bool },
    Cancel { which: usize },
    Write,
    MissedWrite,
    Delete,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Call),
        4 => (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(which, succeeds)| Step::End { which, succeeds }),
        1 => any::<usize>().prop_map(|which| Step::Cancel { which }),
        2 => Just(Step::Write),
        1 => Just(Step::MissedWrite),
        1 => Just(Step::Delete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_schedule_makes_a_fresh_value_older_than_the_last_invalidation(
        steps in prop::collection::vec(step(), 1..40)
    ) {
        let (cache, now, store) = (cache(), Instant::now(), Rc::new(Cell::new(1)));
        let mut calls: Vec<Call> = Vec::new();
        for step in steps {
            match step {
                Step::Call => calls.push(Call::make(&cache, &store, now)),
                Step::End { which, succeeds } if !calls.is_empty() => {
                    let index = which % calls.len();
                    calls[index].gate.take().map(|gate| gate.send(succeeds));
                }
                Step::Cancel { which } if !calls.is_empty() => drop(calls.remove(which % calls.len())),
                Step::Write => {
                    store.set(store.get() + 1);
                    cache.invalidate(&key());
                }
                Step::MissedWrite => {
                    store.set(store.get() + 1);
                    cache.mark_all_stale();
                }
                Step::Delete => {
                    store.set(store.get() + 1);
                    cache.remove(&key());
                }
                Step::End { .. } | Step::Cancel { .. } => {}
            }
            let mut pending = Vec::new();
            for mut call in calls {
                match call.poll() {
                    None => pending.push(call),
                    Some(Ok(served)) if !served.stale => prop_assert!(served.value >= call.stored),
                    Some(_) => {}
                }
            }
            calls = pending;
            if let Some(value) = cache.peek("host/page", now) {
                prop_assert_eq!(value, store.get());
            }
        }
    }
}
