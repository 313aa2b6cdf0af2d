//! Components start, fail and stop together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use service::{ExitReason, Lifecycle, Shutdown};

const GRACE: Duration = Duration::from_secs(5);

async fn wait_for(shutdown: Shutdown) -> anyhow::Result<()> {
    shutdown.requested().await;
    Ok(())
}

#[tokio::test]
async fn a_failed_component_stops_the_service_with_its_name() {
    let mut lifecycle = Lifecycle::new(Shutdown::new());
    let (shutdown, ended) = (lifecycle.shutdown(), Arc::new(AtomicBool::new(false)));
    let has_ended = Arc::clone(&ended);
    lifecycle.spawn("patient", async move {
        shutdown.requested().await;
        has_ended.store(true, Ordering::SeqCst);
        Ok(())
    });
    lifecycle.spawn("relay", async { anyhow::bail!("lost its database") });
    let outcome = lifecycle.run(GRACE).await.unwrap_err();
    assert_eq!(outcome.to_string(), "component `relay` died: lost its database");
    assert!(ended.load(Ordering::SeqCst), "the others were stopped and waited for");
}

#[tokio::test]
async fn a_component_that_returns_or_panics_before_shutdown_has_died() {
    let mut lifecycle = Lifecycle::new(Shutdown::new());
    lifecycle.spawn("sweeper", async { Ok(()) });
    let outcome = lifecycle.run(GRACE).await.unwrap_err();
    assert_eq!(outcome.to_string(), "component `sweeper` died: it returned");

    let mut lifecycle = Lifecycle::new(Shutdown::new());
    lifecycle.spawn("worker", async { panic!("index out of bounds") });
    let outcome = lifecycle.run(GRACE).await.unwrap_err();
    assert_eq!(outcome.to_string(), "component `worker` died: it panicked: index out of bounds");
}

#[tokio::test]
async fn a_requested_shutdown_succeeds_and_last_components_end_last() {
    let shutdown = Shutdown::new();
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    let (release, held) = tokio::sync::oneshot::channel::<()>();
    let drained = lifecycle.drained();
    lifecycle.spawn("drains", async move { Ok(held.await?) });
    lifecycle.spawn("server", wait_for(lifecycle.shutdown()));
    lifecycle.spawn_last("ops", wait_for(lifecycle.drained()));
    shutdown.request();
    let running = tokio::spawn(lifecycle.run(GRACE));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!drained.is_requested(), "one component is still draining");
    release.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(drained.is_requested());
}

#[tokio::test]
async fn a_component_that_does_not_end_is_aborted_after_the_grace_period() {
    let shutdown = Shutdown::new();
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    lifecycle.spawn("stubborn", std::future::pending());
    lifecycle.spawn("server", wait_for(lifecycle.shutdown()));
    shutdown.request();
    let began = Instant::now();
    let grace = Duration::from_millis(50);
    let outcome = lifecycle.run(grace).await.unwrap_err();
    assert!(matches!(outcome, ExitReason::TimedOut { names, .. } if names == ["stubborn"]));
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_failure_during_shutdown_is_reported_and_the_others_still_end() {
    let shutdown = Shutdown::new();
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    let requested = lifecycle.shutdown();
    lifecycle.spawn("writer", async move {
        requested.requested().await;
        anyhow::bail!("disk full")
    });
    lifecycle.spawn("server", wait_for(lifecycle.shutdown()));
    shutdown.request();
    let outcome = lifecycle.run(GRACE).await.unwrap_err();
    assert_eq!(outcome.to_string(), "component `writer` failed during shutdown: disk full");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_ends_at_the_moment_of_the_request_has_not_died() {
    for _ in 0..500 {
        let shutdown = Shutdown::new();
        let mut lifecycle = Lifecycle::new(shutdown.clone());
        lifecycle.spawn("server", wait_for(lifecycle.shutdown()));
        lifecycle.spawn("relay", wait_for(lifecycle.shutdown()));
        let requesting = tokio::spawn(async move { shutdown.request() });
        lifecycle.run(GRACE).await.unwrap();
        requesting.await.unwrap();
    }
}
