//! The pools of this process, for their metrics.

use std::sync::{Mutex, PoisonError, Weak};

use instruments::Series;
use sqlx::postgres::PgPool;

/// Pools that are in use, and perhaps some that are not any more.
static POOLS: Mutex<Vec<Weak<PgPool>>> = Mutex::new(Vec::new());

/// Counts a pool's connections until it is dropped.
pub(super) fn register(pool: Weak<PgPool>) {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|pool| pool.strong_count() > 0);
    pools.push(pool);
}

/// Returns the sum over the pools that are in use.
fn sum(count: impl Fn(&PgPool) -> u32) -> u32 {
    let pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    pools.iter().filter_map(Weak::upgrade).map(|pool| count(&pool)).sum()
}

fn idle(pool: &PgPool) -> u32 {
    // Both counts change while they are read.
    u32::try_from(pool.num_idle()).unwrap_or(u32::MAX).min(pool.size())
}

pub(crate) fn connections_by_state() -> Vec<Series> {
    let in_use = sum(|pool| pool.size().saturating_sub(idle(pool)));
    vec![(vec![("state", "in_use")], f64::from(in_use)), (vec![("state", "idle")], f64::from(sum(idle)))]
}

pub(crate) fn max_connections() -> Vec<Series> {
    vec![(Vec::new(), f64::from(sum(|pool| pool.options().get_max_connections())))]
}
