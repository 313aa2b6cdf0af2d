//! HAProxy in front of several edges. It names their clients by the PROXY protocol, and follows `/readyz`.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use rustix::process::Signal;
use sandbox::child::Child;
use sandbox::port::{self, Reserved};
use sandbox::programs::haproxy;

use crate::{Client, Replica, System, until};

/// A running balancer.
#[derive(Debug)]
pub struct Balancer {
    _process: Child,
    public: Reserved,
    statistics: Reserved,
    servers: usize,
}

impl Balancer {
    /// Starts HAProxy in front of these edges. Returns why it can't be had, as without a network.
    pub async fn start(system: &System, edges: &[&Replica]) -> Result<Result<Self, String>> {
        let command = match tokio::task::spawn_blocking(haproxy).await? {
            Ok(command) => command,
            Err(error) => return Ok(Err(format!("{error:#}"))),
        };
        let (public, statistics) = (port::reserve()?, port::reserve()?);
        let file = system.folder().join("haproxy.cfg");
        std::fs::write(&file, configuration(&public, &statistics, edges)?)?;
        let mut command = command;
        command.arg("-db").arg("-f").arg(&file);
        let log = system.folder().join("logs/haproxy.log");
        let process = Child::spawn("haproxy", command, Signal::TERM, &log)?;
        let balancer = Self { _process: process, public, statistics, servers: edges.len() };
        balancer.until_all_used().await?;
        Ok(Ok(balancer))
    }

    /// The public port.
    pub fn port(&self) -> u16 {
        self.public.port
    }

    /// Waits until it sends connections to all edges.
    pub async fn until_all_used(&self) -> Result<()> {
        let client = Client::new(self.statistics.port);
        until("the balancer to use every edge", async || {
            let table = client.get("http://localhost/;csv").await.ok()?.text();
            let used = table.lines().filter(|line| line.starts_with("edges,edge-") && line.contains(",UP,"));
            (used.count() == self.servers).then_some(())
        })
        .await
        .context("HAProxy")
    }
}

/// The same shape as in `deploy/compose`, with checks that follow more closely.
fn configuration(public: &Reserved, statistics: &Reserved, edges: &[&Replica]) -> Result<String> {
    let mut text = format!(
        "global
    maxconn 2000
defaults
    mode tcp
    timeout connect 2s
    timeout check 2s
    timeout client 5m
    timeout server 5m
    retries 3
    option redispatch 1
frontend public
    bind 127.0.0.1:{}
    default_backend edges
frontend statistics
    mode http
    bind 127.0.0.1:{}
    stats enable
    stats uri /
backend edges
    balance leastconn
    option httpchk GET /readyz
    http-check expect status 200
    default-server check inter 500ms fall 1 rise 1 send-proxy-v2
",
        public.port, statistics.port
    );
    for (number, edge) in edges.iter().enumerate() {
        writeln!(text, "    server edge-{number} 127.0.0.1:{} port {}", edge.port(), edge.ops_port())?;
    }
    Ok(text)
}
