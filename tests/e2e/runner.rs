//! The local runner: what it starts it finds again, ends, and never leaves behind.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{Client, System, until};
use http::Method;

use crate::PROGRAM;
use crate::story::Story;

#[tokio::test(flavor = "multi_thread")]
async fn a_second_start_on_the_same_folder_finds_everything_as_it_was() -> Result<()> {
    let mut system = System::start(PROGRAM, false, &[]).await?;
    let mut story = Story::begin(&system).await?;
    story.a_trial_gives_a_working_key().await?;
    story.a_page_is_live().await?;
    story.a_form_knows_right_from_wrong().await?;
    story.a_webhook_listens().await?;
    let submission = story.an_answer_is_taken().await?;
    story.a_site_is_counted().await?;
    story.a_visit_is_taken().await?;

    system.restart().await?;
    story.moved_to(&system);
    story.the_page_is_still_live().await?;
    story.it_is_stored_and_delivered(&submission).await?;
    story.the_visit_is_counted_once().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_runner_leaves_no_process_behind() -> Result<()> {
    let system = System::start(PROGRAM, true, &[]).await?;
    let family = descendants(system.file.pid)?;
    ensure!(family.len() >= 7, "four services and three stores were expected below the runner: {family:?}");
    system.kill_runner()?;
    until("every process of the system to be gone", async || {
        family.iter().all(|pid| !is_running(*pid)).then_some(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_tell_what_runs_and_end_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let run = |arguments: &[&str]| -> Result<(bool, String)> {
        let done = Command::new(PROGRAM).args(arguments).arg("--dir").arg(folder.path()).output()?;
        let said = [done.stdout, done.stderr].concat();
        Ok((done.status.success(), String::from_utf8_lossy(&said).into_owned()))
    };
    let (fine, said) = run(&["status"])?;
    ensure!(!fine && said.contains("Nothing runs"), "{said}");
    let (fine, said) = run(&["up", "--detach", "--port", "0"])?;
    ensure!(fine && said.contains("Three calls to try"), "{said}");
    let (fine, said) = run(&["up", "--port", "0"])?;
    ensure!(!fine && said.contains("already runs"), "{said}");
    let (fine, said) = run(&["status"])?;
    ensure!(fine && said.matches("ready").count() == 4, "{said}");
    let (fine, said) = run(&["demo"])?;
    ensure!(fine && said.contains("page views of the last week are counted"), "{said}");
    calls_of_the_demonstration_are_answered(&said).await?;
    let (fine, said) = run(&["logs", "postgres"])?;
    ensure!(fine && said.contains("ready to accept connections"), "{said}");
    let (fine, said) = run(&["reset", "--yes"])?;
    ensure!(!fine && said.contains("stop it first"), "{said}");
    let (fine, said) = run(&["down"])?;
    ensure!(fine && said.contains("Stopped"), "{said}");
    let (fine, said) = run(&["reset", "--yes"])?;
    ensure!(fine && said.contains("is empty"), "{said}");
    ensure!(!folder.path().join("postgres").exists() && !folder.path().join("secrets.json").exists());
    Ok(())
}

/// The calls that the demonstration shows, each made as it is written: all tell something of the week.
async fn calls_of_the_demonstration_are_answered(said: &str) -> Result<()> {
    let mut asked = BTreeSet::new();
    for call in said.lines().filter(|line| line.starts_with("curl ")) {
        let words: Vec<&str> = call.split('\'').skip(1).step_by(2).collect();
        let (url, key) = (words[0], words[1].strip_prefix("Authorization: Bearer ").context("no key")?);
        let uri: http::Uri = url.parse()?;
        let mut client = Client::new(uri.port_u16().context("no port")?);
        client.key = Some(key.to_owned());
        let answer = match words.get(3) {
            Some(body) => client.insist(Method::POST, url, &serde_json::from_str(body)?).await?,
            None => client.get(url).await?.json(),
        };
        let kind = uri.path().split('/').nth(3).unwrap_or_default();
        let tells = match kind {
            "query" => answer["total"].as_f64() > Some(0.0),
            // Nobody is there but whoever looks at the demonstration.
            "realtime" => answer["activeVisitors"].is_u64(),
            "sessions" => answer["sessions"][0]["pages"][1]["url"].is_string(),
            "funnel" => answer["steps"][2]["count"].as_u64() > Some(0),
            "retention" => answer["cohorts"][0]["total"].as_u64() > Some(0),
            "sites" => answer["name"] == "Kettle & Crumb",
            _ => false,
        };
        ensure!(tells, "{call}\n{answer:#}");
        asked.insert(kind.to_owned());
    }
    ensure!(asked.len() == 6, "not every kind of question is shown: {asked:?}");
    Ok(())
}

#[test]
fn what_can_not_work_is_said_before_anything_starts() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let cases = [
        ("nonsense.key=1", "no service has a setting `nonsense.key`"),
        ("http.base_url=https://app.example.com", "must be on localhost"),
        ("http.base_url=nonsense", "base_url must be a http(s) address"),
        ("no-equals-sign", "has no `=`"),
    ];
    for (set, sentence) in cases {
        let done = Command::new(PROGRAM)
            .args(["up", "--port", "0", "--set", set, "--dir"])
            .arg(folder.path())
            .output()?;
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        ensure!(!done.status.success() && said.contains(sentence), "{set}: {said}");
    }
    Ok(())
}

/// Every process below `pid`, as `/proc` tells it.
fn descendants(pid: u32) -> Result<BTreeSet<u32>> {
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, stat_of(pid)?.1))
        })
        .collect();
    let mut family = BTreeSet::from([pid]);
    loop {
        let more: Vec<u32> = parents
            .iter()
            .filter(|(pid, parent)| family.contains(parent) && !family.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            family.remove(&pid);
            return Ok(family);
        }
        family.extend(more);
    }
}

fn is_running(pid: u32) -> bool {
    stat_of(pid).is_some_and(|(state, _)| state != 'Z')
}

/// A process's state and its parent.
fn stat_of(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may hold anything, spaces and brackets too.
    let mut rest = stat.rsplit_once(") ").context("no name").ok()?.1.split(' ');
    Some((rest.next()?.chars().next()?, rest.next()?.parse().ok()?))
}
