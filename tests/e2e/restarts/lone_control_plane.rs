//! The only control plane restarts: the edge holds its requests until they find it again.

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
        format!("upstreams.control_plane={}", control_plane.url()),
        format!("upstreams.collector={}", collector.url()),
    ];
    let set = set_of("edge-server", &upstreams.each_ref().map(String::as_str));
    let edge = Replica::start(PROGRAM, &system, "edge-server", &set).await?;
    let scene = Scene::create(&system, edge.port()).await?;

    let load = Load::start(scene.api_calls());
    let mut restarts = Vec::new();
    for _ in 0..3 {
        restarts.push(control_plane.restart().await?);
    }
    let outcome = load.stop().await;
    outcome.ensure_no_failure()?;
    ensure!(outcome.total() > 100, "{:?}", outcome.sent);
    scene.ensure_each_page_is_stored_once().await?;
    println!(
        "RESTART | one control plane, 3 times | {} | 0 | {:.0} ms |",
        outcome.total(),
        outcome.longest.as_secs_f64() * 1_000.0
    );
    Ok(())
}
