//! The local runner keeps data over restarts, reports and stops what it started, and leaves no process behind.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{Client, System, until};
use http::Method;
use rustix::process::{Pid, Signal, kill_process};

use crate::PROGRAM;
use crate::story::Story;

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_on_the_same_folder_keeps_all_data() -> Result<()> {
    let mut system = System::start(PROGRAM, false, &[]).await?;
    let mut story = Story::begin(&system).await?;
    story.a_trial_gives_a_working_key().await?;
    story.a_page_is_live().await?;
    story.a_form_validates_submissions().await?;
    story.a_webhook_is_created().await?;
    let submission = story.a_submission_is_accepted().await?;
    story.an_analytics_site_is_created().await?;
    story.an_event_is_accepted().await?;

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
async fn a_killed_store_is_restarted_on_its_port_and_the_story_goes_on() -> Result<()> {
    let mut system = System::start(PROGRAM, false, &[]).await?;
    let mut story = Story::begin(&system).await?;
    story.a_trial_gives_a_working_key().await?;
    story.a_page_is_live().await?;
    story.a_form_validates_submissions().await?;
    story.a_webhook_is_created().await?;
    let stores = system.read_file()?.stores;
    ensure!(stores.len() == 3, "{stores:?}");
    for name in stores.keys() {
        system.restart_store(name).await?;
    }
    system.until_ready().await?;
    let submission = story.a_submission_is_accepted().await?;
    story.it_is_stored_and_delivered(&submission).await?;
    let log = std::fs::read_to_string(system.folder().join("story.log"))?;
    ensure!(log.matches("a store exited; restarting it on its port").count() == 3, "{log}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_names_a_store_that_is_down() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let status = || -> Result<(bool, String)> {
        let done = Command::new(PROGRAM).args(["status", "--dir"]).arg(system.folder()).output()?;
        Ok((done.status.success(), String::from_utf8(done.stdout)?))
    };
    let (fine, output) = status()?;
    ensure!(fine, "{output}");
    // Without its data, the store can't be restarted.
    let store = system.read_file()?.stores.remove("redis").and_then(|store| store.pid).context("no Redis")?;
    std::fs::remove_dir_all(system.folder().join("redis"))?;
    std::fs::write(system.folder().join("redis"), "not a directory")?;
    kill(store)?;
    let down = until("the store to be reported", async || {
        let (fine, output) = status().ok()?;
        (!fine).then_some(output)
    })
    .await?;
    ensure!(down.lines().any(|line| line.starts_with("redis") && line.ends_with("DOWN")), "{down}");
    Ok(())
}

fn kill(pid: u32) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no process")?;
    Ok(kill_process(pid, Signal::KILL)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_report_and_stop_the_running_system() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let run = |arguments: &[&str]| -> Result<(bool, String)> {
        let done = Command::new(PROGRAM).args(arguments).arg("--dir").arg(folder.path()).output()?;
        let output = [done.stdout, done.stderr].concat();
        Ok((done.status.success(), String::from_utf8_lossy(&output).into_owned()))
    };
    let (fine, output) = run(&["status"])?;
    ensure!(!fine && output.contains("Nothing runs"), "{output}");
    let (fine, output) = run(&["up", "--detach", "--port", "0"])?;
    ensure!(fine && output.contains("Three calls to try"), "{output}");
    let up_log = || std::fs::read_to_string(folder.path().join("logs/up.log"));
    let first_log = up_log()?;
    ensure!(first_log.contains("migrating the schemas"), "{first_log}");
    for again in [&["up", "--port", "0"][..], &["up", "--detach", "--port", "0"]] {
        let (fine, output) = run(again)?;
        ensure!(!fine && output.contains("already runs"), "{output}");
    }
    ensure!(up_log()? == first_log, "a second start wrote to the log of the first");
    let (fine, output) = run(&["status"])?;
    ensure!(fine && output.matches(" ready").count() == 7, "{output}");
    let (fine, output) = run(&["demo"])?;
    ensure!(fine && output.contains("page views of the last week are counted"), "{output}");
    demo_calls_return_figures(&output).await?;
    let (fine, output) = run(&["logs", "postgres"])?;
    ensure!(fine && output.contains("ready to accept connections"), "{output}");
    let (fine, output) = run(&["reset", "--yes"])?;
    ensure!(!fine && output.contains("stop it first"), "{output}");
    let (fine, output) = run(&["down"])?;
    ensure!(fine && output.contains("Stopped"), "{output}");
    std::fs::create_dir_all(folder.path().join("blobs/an-account"))?;
    let (fine, output) = run(&["reset", "--yes"])?;
    ensure!(fine && output.contains("is empty"), "{output}");
    for part in ["postgres", "redis", "clickhouse", "blobs", "secrets.json", "stack.json"] {
        ensure!(!folder.path().join(part).exists(), "{part} was not deleted");
    }
    Ok(())
}

/// Sends each request that the demo printed and checks that the response contains figures.
async fn demo_calls_return_figures(output: &str) -> Result<()> {
    let mut queried = BTreeSet::new();
    for call in output.lines().filter(|line| line.starts_with("curl ")) {
        let words: Vec<&str> = call.split('\'').skip(1).step_by(2).collect();
        let (url, key) = (words[0], words[1].strip_prefix("Authorization: Bearer ").context("no key")?);
        let uri: http::Uri = url.parse()?;
        let mut client = Client::new(uri.port_u16().context("no port")?);
        client.key = Some(key.to_owned());
        let answer = match words.get(3) {
            Some(body) => client.retry_until_ok(Method::POST, url, &serde_json::from_str(body)?).await?,
            None => client.get(url).await?.json(),
        };
        let kind = match uri.path().split('/').skip(3).collect::<Vec<_>>()[..] {
            ["funnel", kind] | [kind, ..] => kind,
            [] => "",
        };
        let has_figures = match kind {
            "query" => answer["total"].as_f64() > Some(0.0),
            // There may be no active visitor.
            "realtime" => answer["activeVisitors"].is_u64(),
            "sessions" => answer["sessions"][0]["pages"][1]["url"].is_string(),
            "funnel" => answer["steps"][2]["count"].as_u64() > Some(0),
            "drop-off" => answer["nextPages"][0]["visits"].as_u64() > Some(0),
            "retention" => answer["cohorts"][0]["total"].as_u64() > Some(0),
            "sites" => answer["name"] == "Kettle & Crumb",
            _ => false,
        };
        ensure!(has_figures, "{call}\n{answer:#}");
        queried.insert(kind.to_owned());
    }
    ensure!(queried.len() == 7, "not every kind of query is printed: {queried:?}");
    Ok(())
}

#[test]
fn invalid_settings_are_reported_before_anything_starts() -> Result<()> {
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
        let output = String::from_utf8_lossy(&done.stderr).into_owned();
        ensure!(!done.status.success() && output.contains(sentence), "{set}: {output}");
    }
    Ok(())
}

/// All descendants of the process `pid`, read from `/proc`.
fn descendants(pid: u32) -> Result<BTreeSet<u32>> {
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, stat_of(pid)?.1))
        })
        .collect();
    let mut found = BTreeSet::from([pid]);
    loop {
        let more: Vec<u32> = parents
            .iter()
            .filter(|(pid, parent)| found.contains(parent) && !found.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            found.remove(&pid);
            return Ok(found);
        }
        found.extend(more);
    }
}

fn is_running(pid: u32) -> bool {
    stat_of(pid).is_some_and(|(state, _)| state != 'Z')
}

/// A process's state and parent pid.
fn stat_of(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name before it may contain spaces and brackets.
    let mut rest = stat.rsplit_once(") ").context("no name").ok()?.1.split(' ');
    Some((rest.next()?.chars().next()?, rest.next()?.parse().ok()?))
}

#[tokio::test(flavor = "multi_thread")]
async fn https_is_served_with_certificates_of_an_authority_that_is_made_once() -> Result<()> {
    let mut system = System::start_with(PROGRAM, &["--https", "--https-port", "0"], &[]).await?;
    let authority = system.folder().join("authority.pem");
    let made = std::fs::read(&authority)?;
    for _ in 0..2 {
        let port = system.file.https_port.context("no https_port in stack.json")?;
        for url in [format!("https://localhost:{port}/"), format!("https://absent.sites.localhost:{port}/")] {
            let mut curl = Command::new("curl");
            curl.args(["--silent", "--show-error", "--cacert"]).arg(&authority).arg(&url);
            let output = curl.output().context("install curl")?;
            let text = String::from_utf8_lossy(&output.stdout);
            ensure!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
            ensure!(text.contains("Web Runtime") || text.contains("There is no page"), "{url}: {text}");
        }
        system.restart().await?;
        ensure!(std::fs::read(&authority)? == made, "the authority is made once");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_url_of_https_starts_http_leads_there_and_the_demo_works() -> Result<()> {
    let (folder, port) = (tempfile::tempdir()?, sandbox::port::reserve()?);
    let base_url = format!("https://localhost:{}", port.port);
    let run = |arguments: &[&str]| -> Result<String> {
        let done = Command::new(PROGRAM).args(arguments).arg("--dir").arg(folder.path()).output()?;
        let output = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        ensure!(done.status.success(), "{output}");
        Ok(output)
    };
    let https_port = port.port.to_string();
    let set = format!("http.base_url={base_url}");
    let output =
        run(&["up", "--detach", "--port", "0", "--https", "--https-port", &https_port, "--set", &set])?;
    ensure!(output.contains("Three calls to try") && output.contains(&base_url), "{output}");
    let file: local::StackFile =
        serde_json::from_slice(&std::fs::read(folder.path().join(local::StackFile::NAME))?)?;
    let plain = Client::new(file.http_port).get("http://localhost/login").await?;
    ensure!(plain.header("location") == format!("{base_url}/login"), "{plain:?}");
    let demo = run(&["demo"])?;
    ensure!(demo.contains(&format!("curl -s '{base_url}/api/analytics/")), "{demo}");
    ensure!(demo.contains(" --cacert '"), "{demo}");
    run(&["down"]).map(drop)
}
