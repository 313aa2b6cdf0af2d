//! A supervisor keeps the edge's socket, as systemd does: no connection is refused, not even when the edge is killed.

use anyhow::{Result, ensure};
use harness::{Load, Replica, System};
use rustix::process::Signal;

use super::scene::{Scene, set_of};
use crate::PROGRAM;

#[tokio::test(flavor = "multi_thread")]
async fn no_connection_is_refused_while_an_edge_with_a_passed_socket_restarts() -> Result<()> {
    let system = System::start_stores(PROGRAM, &[]).await?;
    let control_plane =
        Replica::start(PROGRAM, &system, "control-plane", &set_of("control-plane", &[])).await?;
    let upstream = format!("upstreams.control_plane={}", control_plane.url());
    let set = set_of("edge-server", &[&upstream]);
    let mut edge = Replica::start_with_socket(PROGRAM, &system, "edge-server", &set).await?;
    let scene = Scene::create(&system, edge.port()).await?;

    let load = Load::start([scene.page_views(), scene.api_calls()].concat());
    // Twice: the second process must not have kept the socket to itself.
    for _ in 0..2 {
        edge.restart().await?;
    }
    let outcome = load.stop().await;
    outcome.ensure_no_failure()?;
    scene.ensure_each_page_is_stored_once().await?;
    println!("{}", outcome.row("one edge with a passed socket", "0"));

    let load = Load::start(scene.page_views());
    for _ in 0..3 {
        edge.signal(Signal::KILL)?;
        edge.ended().await?;
        edge.begin()?;
        edge.until_ready().await?;
    }
    let outcome = load.stop().await;
    let refused = outcome.failures.iter().filter(|failure| failure.is_refused).count();
    ensure!(refused == 0, "{refused} of {} connections were refused", outcome.total());
    let failed = format!("{} cut, 0 refused", outcome.failures.len());
    println!("{}", outcome.row("one edge with a passed socket, killed three times", &failed));
    Ok(())
}
