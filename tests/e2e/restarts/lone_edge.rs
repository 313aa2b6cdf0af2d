//! The only edge restarts without a balancer: connections are refused for a moment, and nothing else fails.

use std::time::Duration;

use anyhow::{Result, ensure};
use harness::{Load, Replica, System};

use super::scene::{Scene, set_of};
use crate::PROGRAM;

/// Longest time in which connections are refused.
const REFUSED_FOR: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_lone_edge_refuses_connections_for_a_moment_and_cuts_none() -> Result<()> {
    let system = System::start_stores(PROGRAM, &[]).await?;
    let control_plane =
        Replica::start(PROGRAM, &system, "control-plane", &set_of("control-plane", &[])).await?;
    let upstream = format!("upstreams.control_plane={}", control_plane.url());
    let mut edge =
        Replica::start(PROGRAM, &system, "edge-server", &set_of("edge-server", &[&upstream])).await?;
    let scene = Scene::create(&system, edge.port()).await?;

    let mut load = Load::start([scene.page_views(), scene.api_calls()].concat());
    let (_shutdown, start) = edge.restart().await?;
    load.until_answered().await?;
    let outcome = load.stop().await;
    let cut: Vec<_> = outcome.failures.iter().filter(|failure| !failure.is_refused).collect();
    ensure!(cut.is_empty(), "requests failed whose connection was accepted: {cut:#?}");
    let refused_for = outcome.refused_for();
    // A start takes 200 ms, and longer on a busy machine.
    let limit = REFUSED_FOR.max(start * 4);
    ensure!(refused_for <= limit, "connections were refused for {refused_for:?}; the start took {start:?}");
    let failed = format!("{} refused, within {} ms", outcome.failures.len(), refused_for.as_millis());
    println!("{}", outcome.row("one edge without a balancer", &failed));
    scene.ensure_each_page_is_stored_once().await
}
