//! Plays a story twice: undisturbed, and with the job-runner killed in its middle. Both must end alike.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Peer, System, until_within};
use serde_json::Value;

use super::owner::Owner;
use super::run_log::Automation;
use super::scene::Scene;
use crate::PROGRAM;

/// The longest wait for a run: until the next minute, and until the lease of a killed worker has expired.
pub(super) const RUN_TIMEOUT: Duration = Duration::from_secs(100);

/// The moment in which the job-runner is killed.
pub(super) enum Middle {
    /// The peer has received the request of this number, from 0, to this path. It never answers it.
    Request(&'static str, usize),
    /// The run waits.
    Waiting,
}

/// An automation with what starts it and what it must have done.
pub(super) trait Story: Sized {
    const NAME: &'static str;
    const MIDDLE: Middle;
    /// What the trigger answered.
    type Answer;

    /// Writes the scripts of the peer, makes pages and forms, and stores the automation.
    async fn create(scene: &Scene) -> Result<Self>;

    fn automation(&self) -> &Automation;

    /// Starts the run, and waits for the trigger's answer.
    async fn start(&self, scene: &Scene) -> Result<Self::Answer>;

    /// Waits for the end and checks every effect. Returns what must not depend on whether there was a kill.
    async fn check(&self, scene: &Scene, answer: Self::Answer) -> Result<Value>;
}

/// Starts a system for a group of stories.
pub(super) async fn start_system() -> Result<(System, Owner)> {
    let system = System::start(PROGRAM, true, &["automations.lease_ttl=6s"]).await?;
    let owner = Owner::new(&system).await?;
    Ok((system, owner))
}

/// A story that can start.
pub(super) struct Prepared<S> {
    scene: Scene,
    story: S,
}

impl<S: Story> Prepared<S> {
    pub(super) async fn new(owner: &Owner, is_killed: bool) -> Result<Self> {
        let peer = Peer::listen().await?;
        let scene = Scene { owner: owner.clone(), peer, is_killed };
        if let (true, Middle::Request(path, number)) = (is_killed, S::MIDDLE) {
            scene.peer.hang(path, number);
        }
        let story = S::create(&scene).await.with_context(|| S::NAME.to_owned())?;
        Ok(Self { scene, story })
    }

    pub(super) async fn start(&self) -> Result<S::Answer> {
        self.story.start(&self.scene).await.with_context(|| S::NAME.to_owned())
    }

    /// Waits for the moment of the kill.
    pub(super) async fn reach_middle(&self) -> Result<()> {
        let Scene { owner, peer, .. } = &self.scene;
        match S::MIDDLE {
            Middle::Waiting => self.story.automation().until_status(owner, "waiting").await.map(drop),
            Middle::Request(path, _) => {
                let what = format!("{}: the decisive request to {path}", S::NAME);
                until_within(RUN_TIMEOUT, &what, async || {
                    peer.requests(path).iter().any(|request| request.hangs).then_some(())
                })
                .await
            }
        }
    }

    pub(super) async fn check(&self, answer: S::Answer) -> Result<Value> {
        let variant = if self.scene.is_killed { "killed" } else { "undisturbed" };
        let checked = self.story.check(&self.scene, answer).await;
        checked.with_context(|| format!("{}, {variant}", S::NAME))
    }
}

/// Plays a story undisturbed. Returns its final state.
pub(super) async fn play<S: Story>(owner: &Owner) -> Result<Value> {
    let prepared = Prepared::<S>::new(owner, false).await?;
    let answer = prepared.start().await?;
    prepared.check(answer).await
}

/// Plays a story undisturbed, then with a kill.
pub(super) async fn play_both<S: Story>(system: &mut System, owner: &Owner) -> Result<()> {
    let undisturbed = play::<S>(owner).await?;
    let prepared = Prepared::<S>::new(owner, true).await?;
    let killed = async {
        prepared.reach_middle().await?;
        kill_job_runner(system).await
    };
    let (answer, ()) = tokio::try_join!(prepared.start(), killed)?;
    let after_kill = prepared.check(answer).await?;
    ensure_equal::<S>(&undisturbed, &after_kill)
}

/// Kills the job-runner with SIGKILL and waits until it runs again.
pub(super) async fn kill_job_runner(system: &mut System) -> Result<()> {
    system.kill("job-runner")?;
    system.until_ready().await.map(drop)
}

pub(super) fn ensure_equal<S: Story>(undisturbed: &Value, killed: &Value) -> Result<()> {
    ensure!(
        undisturbed == killed,
        "{}: the kill changed the result\nundisturbed: {undisturbed:#}\nkilled: {killed:#}",
        S::NAME
    );
    Ok(())
}
