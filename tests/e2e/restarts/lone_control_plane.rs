//! The only control plane restarts: the edge holds its requests until they find it again.

use std::time::Duration;

use anyhow::{Result, ensure};
use harness::{Load, Replica, System};

use super::scene::{Scene, set_of};
use crate::PROGRAM;

#[tokio::test(flavor = "multi_thread")]
async fn no_api_call_fails_while_the_only_control_plane_restarts() -> Result<()> {
    let system = System::start_stores(PROGRAM, &[]).await?;
    let set = set_of("control-plane", &[]);
    let mut control_plane = Replica::start(PROGRAM, &system, "control-plane", &set).await?;
    let collector = Replica::start(PROGRAM, &system, "collector", &set_of("collector", &[])).await?;
    let upstreams = [
        // Of the slow request.
        "connections.body_timeout=1m".to_owned(),
        format!("upstreams.control_plane={}", control_plane.url()),
        format!("upstreams.collector={}", collector.url()),
        // Longer than by default: a busy machine may start a process slowly.
        "upstreams.connect_retry=30s".to_owned(),
    ];
    let set = set_of("edge-server", &upstreams.each_ref().map(String::as_str));
    let edge = Replica::start(PROGRAM, &system, "edge-server", &set).await?;
    let scene = Scene::create(&system, edge.port()).await?;

    let load = Load::start(scene.api_calls());
    for _ in 0..2 {
        control_plane.restart().await?;
    }
    // A request that takes longer than the drain period: the others are answered meanwhile, and it is not cut.
    let slow = scene.begin_slow_page().await?;
    let (restarted, answered) = tokio::join!(control_plane.restart(), async {
        scene.until_more_pages(25).await?;
        slow.finish().await
    });
    let (shutdown, _start) = restarted?;
    answered?;
    ensure!(
        shutdown > Duration::from_secs(6),
        "the slow request ended within the drain period, {shutdown:?}"
    );
    let outcome = load.stop().await;
    outcome.ensure_no_failure()?;
    ensure!(outcome.total() > 50, "{:?}", outcome.sent);
    scene.ensure_each_page_is_stored_once().await?;
    println!("{}", outcome.row("one control plane, three times", "0"));
    Ok(())
}
