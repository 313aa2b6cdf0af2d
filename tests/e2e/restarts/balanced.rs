//! Two of each service behind HAProxy: each is restarted in turn, as in an upgrade.

use anyhow::{Result, bail, ensure};
use harness::{Balancer, Load, Replica, System};

use super::scene::{Scene, set_of};
use crate::PROGRAM;

/// Set where HAProxy can be had, as in `.ci/run`: then the test fails without it.
const REQUIRED: &str = "TESTS_REQUIRE_HAPROXY";

#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_while_each_of_two_restarts_behind_a_balancer() -> Result<()> {
    let system = System::start_stores(PROGRAM, &[]).await?;
    let two = async |service, set: &[&str]| -> Result<[Replica; 2]> {
        let set = set_of(service, set);
        let (one, other) = tokio::try_join!(
            Replica::start(PROGRAM, &system, service, &set),
            Replica::start(PROGRAM, &system, service, &set),
        )?;
        Ok([one, other])
    };
    let control_planes = two("control-plane", &[]).await?;
    // Each has a folder of its own for events that are not stored yet.
    let segments = [0, 1].map(|number| {
        format!("segments.folder={}", system.folder().join(format!("segments-{number}")).display())
    });
    let mut collectors = Vec::new();
    for folder in &segments {
        let set = set_of("collector", &[folder]);
        collectors.push(Replica::start(PROGRAM, &system, "collector", &set).await?);
    }
    let job_runners = two("job-runner", &["listen.drain=0s"]).await?;
    let urls = |replicas: &[Replica]| replicas.iter().map(Replica::url).collect::<Vec<_>>().join(",");
    let edge_set = [
        format!("upstreams.control_plane={}", urls(&control_planes)),
        format!("upstreams.collector={}", urls(&collectors)),
        "listen.proxy_protocol=required".to_owned(),
        "http.trusted_proxies=[\"127.0.0.0/8\"]".to_owned(),
    ];
    let edges = two("edge-server", &edge_set.each_ref().map(String::as_str)).await?;
    let balancer = match Balancer::start(&system, &[&edges[0], &edges[1]]).await? {
        Ok(balancer) => balancer,
        Err(reason) if std::env::var_os(REQUIRED).is_none() => {
            eprintln!("NOT TESTED: restarts behind a balancer. {reason}");
            return Ok(());
        }
        Err(reason) => bail!("{REQUIRED} is set, but HAProxy can't be had: {reason}"),
    };
    let scene = Scene::create(&system, balancer.port()).await?;

    let kinds = [scene.page_views(), scene.api_calls(), scene.submissions_and_events()];
    let load = Load::start(kinds.concat());
    let (mut control_planes, mut job_runners, mut edges) = (control_planes, job_runners, edges);
    let inner = control_planes.iter_mut().chain(&mut collectors).chain(&mut job_runners);
    for replica in inner.chain(&mut edges) {
        replica.restart().await?;
        balancer.until_all_used().await?;
    }
    let outcome = load.stop().await;
    outcome.ensure_no_failure()?;
    ensure!(outcome.total() > 300, "{:?}", outcome.sent);
    scene.ensure_each_page_is_stored_once().await?;
    scene.until_delivered().await?;
    println!("{}", outcome.row("two of each service behind HAProxy, in turn", "0"));
    Ok(())
}
