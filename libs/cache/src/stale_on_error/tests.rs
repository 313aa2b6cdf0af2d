//! Freshness, single flight and the races between loading and invalidating, driven by hand: time is an argument
//! and loads end when the test says so.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;

use futures::FutureExt as _;
use futures::channel::oneshot;
use proptest::prelude::*;

use super::*;

const MAX_AGE: Duration = Duration::from_secs(60);
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

type Answer = Result<Served<u32>, &'static str>;

fn cache() -> StaleOnErrorCache<String, u32> {
    let bounds = Bounds { max_bytes: 1_000, max_age: MAX_AGE, retry_interval: RETRY_INTERVAL };
    StaleOnErrorCache::new(bounds, |_, _| 10)
}

fn key() -> String {
    "host/page".into()
}

/// A call whose load is already decided, run to its end.
fn get(cache: &StaleOnErrorCache<String, u32>, now: Instant, loaded: Result<u32, &'static str>) -> Answer {
    cache.get(&key(), now, async { loaded }).now_or_never().unwrap()
}

fn fresh(value: u32, hit: bool) -> Answer {
    Ok(Served { value, stale: false, hit })
}

fn stale(value: u32) -> Answer {
    Ok(Served { value, stale: true, hit: true })
}

#[test]
fn a_value_is_loaded_once_and_again_when_it_is_no_longer_fresh() {
    let (cache, now) = (cache(), Instant::now());
    assert_eq!(get(&cache, now, Ok(1)), fresh(1, false));
    assert_eq!(get(&cache, now + MAX_AGE / 2, Ok(2)), fresh(1, true));
    assert_eq!(cache.peek("host/page", now + MAX_AGE / 2), Some(1));
    assert_eq!(cache.peek("host/page", now + MAX_AGE), None);
    assert_eq!(get(&cache, now + MAX_AGE, Ok(3)), fresh(3, false));
}

#[test]
fn a_stale_value_is_served_when_reloading_fails_and_the_store_is_left_alone_for_a_moment() {
    let (cache, now) = (cache(), Instant::now());
    assert_eq!(get(&cache, now, Err("down")), Err("down"));
    assert_eq!(get(&cache, now, Ok(1)), fresh(1, false));
    let later = now + MAX_AGE;
    assert_eq!(get(&cache, later, Err("down")), stale(1));
    assert_eq!(get(&cache, later + RETRY_INTERVAL / 2, Ok(2)), stale(1), "not tried again yet");
    assert_eq!(get(&cache, later + RETRY_INTERVAL, Ok(2)), fresh(2, false));
}

#[test]
fn an_invalidated_value_is_reloaded_and_only_served_if_that_fails() {
    let (cache, now) = (cache(), Instant::now());
    get(&cache, now, Ok(1)).unwrap();
    cache.invalidate(&key());
    assert_eq!(cache.peek("host/page", now), None);
    assert_eq!(get(&cache, now, Err("down")), stale(1));
    cache.invalidate(&key());
    assert_eq!(get(&cache, now, Ok(2)), fresh(2, false), "a new invalidation is no longer left alone");

    cache.invalidate_where(|key, _| key.starts_with("other/"));
    assert_eq!(get(&cache, now, Ok(3)), fresh(2, true));
    cache.invalidate_where(|key, value| key.starts_with("host/") && *value == 2);
    assert_eq!(get(&cache, now, Ok(3)), fresh(3, false));
}

#[test]
fn everything_expires_at_once_and_a_removed_value_is_gone_for_good() {
    let (cache, now) = (cache(), Instant::now());
    get(&cache, now, Ok(1)).unwrap();
    cache.mark_all_stale();
    assert_eq!(get(&cache, now, Err("down")), stale(1));
    assert_eq!(get(&cache, now + RETRY_INTERVAL, Ok(2)), fresh(2, false));
    cache.remove(&key());
    assert_eq!(get(&cache, now, Err("down")), Err("down"), "suspended pages aren't served stale");
    get(&cache, now, Ok(3)).unwrap();
    cache.remove_where(|key, _| key.starts_with("host/"));
    assert_eq!(get(&cache, now, Err("down")), Err("down"));
}

#[test]
fn a_revised_value_is_as_old_as_it_was_and_undoes_nothing() {
    let (cache, now) = (cache(), Instant::now());
    assert!(!cache.replace_if(&key(), |_| true, 2), "nothing is here");
    get(&cache, now, Ok(1)).unwrap();
    assert!(!cache.replace_if(&key(), |here| *here == 7, 2), "something else is here");
    assert!(cache.replace_if(&key(), |here| *here == 1, 2));
    assert_eq!(cache.peek_with_expiry("host/page", now), Some((2, now + MAX_AGE)));
    assert_eq!((cache.peek("host/page", now + MAX_AGE), cache.last("host/page")), (None, Some(2)));
    cache.invalidate(&key());
    assert!(cache.replace_if(&key(), |_| true, 3));
    assert_eq!(cache.peek("host/page", now), None, "out of date still");
    cache.remove(&key());
    assert!(!cache.replace_if(&key(), |_| true, 4));
    assert_eq!(cache.last("host/page"), None);
}

#[test]
fn weight_is_bounded() {
    let (cache, now) = (cache(), Instant::now());
    for n in 0..1_000 {
        cache.get::<(), _>(&n.to_string(), now, async { Ok(n) }).now_or_never().unwrap().unwrap();
    }
    assert!(cache.weight_bytes() <= 1_000, "{}", cache.weight_bytes());
}

/// A call in the air, whose load ends when the gate is used.
struct Call {
    answer: Pin<Box<dyn Future<Output = Answer>>>,
    gate: Option<oneshot::Sender<bool>>,
    /// What was true when it was made: a fresh answer can't be older.
    truth: u32,
}

impl Call {
    fn make(cache: &StaleOnErrorCache<String, u32>, truth: &Rc<Cell<u32>>, now: Instant) -> Self {
        let (gate, opened) = oneshot::channel();
        let (cache, read) = (cache.clone(), Rc::clone(truth));
        let answer = Box::pin(async move {
            let load = async {
                // Reads at the beginning and takes its time to answer: the worst a store can do.
                let value = read.get();
                if opened.await.unwrap_or(false) { Ok(value) } else { Err("down") }
            };
            cache.get(&key(), now, load).await
        });
        Self { answer, gate: Some(gate), truth: truth.get() }
    }

    fn poll(&mut self) -> Option<Answer> {
        (&mut self.answer).now_or_never()
    }
}

#[test]
fn many_callers_of_one_key_share_one_load() {
    let (cache, now, truth) = (cache(), Instant::now(), Rc::new(Cell::new(7)));
    let mut calls: Vec<_> = (0..5).map(|_| Call::make(&cache, &truth, now)).collect();
    assert!(calls.iter_mut().all(|call| call.poll().is_none()));
    calls[0].gate.take().unwrap().send(true).unwrap();
    assert_eq!(calls[0].poll(), Some(fresh(7, false)));
    for call in &mut calls[1..] {
        assert_eq!(call.poll(), Some(fresh(7, true)), "without its own load");
    }
}

#[test]
fn when_the_loading_caller_gives_up_the_next_one_loads_and_when_it_fails_nobody_queues() {
    let (cache, now, truth) = (cache(), Instant::now(), Rc::new(Cell::new(7)));
    let mut calls: Vec<_> = (0..4).map(|_| Call::make(&cache, &truth, now)).collect();
    assert!(calls.iter_mut().all(|call| call.poll().is_none()));
    drop(calls.remove(0));
    assert!(calls.iter_mut().all(|call| call.poll().is_none()));
    calls[0].gate.take().unwrap().send(false).unwrap();
    assert_eq!(calls[0].poll(), Some(Err("down")));
    assert!(calls[1].poll().is_none() && calls[2].poll().is_none(), "each is loading by itself now");
    calls[2].gate.take().unwrap().send(true).unwrap();
    assert_eq!(calls[2].poll(), Some(fresh(7, false)), "the last needn't wait for the one before");
}

#[test]
fn a_load_that_began_before_an_invalidation_doesnt_bring_the_old_value_back() {
    for removed in [false, true] {
        let (cache, now, truth) = (cache(), Instant::now(), Rc::new(Cell::new(1)));
        let mut call = Call::make(&cache, &truth, now);
        assert!(call.poll().is_none());
        truth.set(2);
        if removed {
            cache.remove(&key());
        } else {
            cache.invalidate(&key());
        }
        call.gate.take().unwrap().send(true).unwrap();
        assert_eq!(call.poll(), Some(fresh(1, false)), "it asked before, it may see what was before");
        assert_eq!(cache.peek("host/page", now), None);
        let during_outage = get(&cache, now, Err("down"));
        assert_eq!(during_outage, if removed { Err("down") } else { stale(1) });
    }
}

#[derive(Clone, Debug)]
enum Step {
    Call,
    End { which: usize, well: bool },
    GiveUp { which: usize },
    Write,
    WriteElsewhereAndMiss,
    Delete,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Call),
        4 => (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(which, well)| Step::End { which, well }),
        1 => any::<usize>().prop_map(|which| Step::GiveUp { which }),
        2 => Just(Step::Write),
        1 => Just(Step::WriteElsewhereAndMiss),
        1 => Just(Step::Delete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_schedule_nothing_fresh_is_older_than_the_last_invalidation(
        steps in prop::collection::vec(step(), 1..40)
    ) {
        let (cache, now, truth) = (cache(), Instant::now(), Rc::new(Cell::new(1)));
        let mut calls: Vec<Call> = Vec::new();
        for step in steps {
            match step {
                Step::Call => calls.push(Call::make(&cache, &truth, now)),
                Step::End { which, well } if !calls.is_empty() => {
                    let at = which % calls.len();
                    calls[at].gate.take().map(|gate| gate.send(well));
                }
                Step::GiveUp { which } if !calls.is_empty() => drop(calls.remove(which % calls.len())),
                Step::Write => {
                    truth.set(truth.get() + 1);
                    cache.invalidate(&key());
                }
                Step::WriteElsewhereAndMiss => {
                    truth.set(truth.get() + 1);
                    cache.mark_all_stale();
                }
                Step::Delete => {
                    truth.set(truth.get() + 1);
                    cache.remove(&key());
                }
                Step::End { .. } | Step::GiveUp { .. } => {}
            }
            let mut still = Vec::new();
            for mut call in calls {
                match call.poll() {
                    None => still.push(call),
                    Some(Ok(served)) if !served.stale => prop_assert!(served.value >= call.truth),
                    Some(_) => {}
                }
            }
            calls = still;
            if let Some(value) = cache.peek("host/page", now) {
                prop_assert_eq!(value, truth.get());
            }
        }
    }
}
