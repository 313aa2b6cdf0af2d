//! Files of a replaced deploy that stay reachable for a day, so that a tab that shows the old site can load the rest of it.
//!
//! Only names with a content hash qualify: such a file is the same whenever it is loaded. Everything else of a site is what
//! its newest deploy says.

use std::cmp::Reverse;

use chrono::{DateTime, TimeDelta, Utc};

use crate::static_sites::deploy_notes::Note;
use crate::static_sites::hashed_names::content_hashed;
use crate::static_sites::reasons::left_out_by_name;

/// How long a file stays reachable after its deploy was replaced.
pub const KEPT_FOR: TimeDelta = TimeDelta::hours(24);

/// Whether the old files of a site stay reachable when another deploy is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldFiles {
    /// They stay for [`KEPT_FOR`].
    Keep,
    /// They end at once, also those of earlier deploys.
    End,
}

impl OldFiles {
    /// Reads the field `keepOldFiles` of a request.
    pub fn from_request(keep: Option<bool>) -> Self {
        if keep == Some(false) { Self::End } else { Self::Keep }
    }
}

/// A file of the replaced deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedFile {
    /// Path on the site, without a leading slash.
    pub path: String,
    pub size_bytes: i64,
    /// When it ends, if that deploy kept it from an earlier one.
    pub expires_at: Option<DateTime<Utc>>,
}

/// What the plan allows to keep, besides the files of the new deploy.
#[derive(Debug, Clone, Copy)]
pub struct Capacity {
    pub files: usize,
    pub bytes: u64,
}

/// The files that stay reachable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptFiles {
    /// Each with the time at which it ends.
    pub files: Vec<(String, DateTime<Utc>)>,
    /// Their total size.
    pub bytes: i64,
    /// Present if some did not fit.
    pub note: Option<Note>,
}

/// Selects the files that stay reachable under the new deploy, which serves the paths for which `is_served` is true. A file
/// that was kept already keeps its end. If not all fit, those of the newest deploy go first.
pub fn select(
    replaced: &[ReplacedFile],
    is_served: impl Fn(&str) -> bool,
    capacity: Capacity,
    now: DateTime<Utc>,
) -> KeptFiles {
    let hashed = content_hashed(replaced.iter().map(|file| file.path.as_str()));
    let mut old: Vec<(Reverse<DateTime<Utc>>, &ReplacedFile)> = replaced
        .iter()
        .filter(|file| hashed.contains(file.path.as_str()) && left_out_by_name(&file.path).is_none())
        .filter(|file| !is_served(&file.path))
        .map(|file| (Reverse(file.expires_at.unwrap_or(now + KEPT_FOR)), file))
        .filter(|(Reverse(expires_at), _)| *expires_at > now)
        .collect();
    old.sort_by_key(|(expires_at, file)| (*expires_at, file.path.as_str()));
    let (mut kept, mut bytes, mut left_out) = (KeptFiles::default(), 0, Vec::new());
    for (Reverse(expires_at), file) in old {
        let with_file = u64::saturating_add(bytes, file.size_bytes.unsigned_abs());
        if kept.files.len() < capacity.files && with_file <= capacity.bytes {
            bytes = with_file;
            kept.bytes += file.size_bytes;
            kept.files.push((file.path.clone(), expires_at));
        } else {
            left_out.push(file.path.as_str());
        }
    }
    kept.note = note(&left_out);
    kept
}

fn note(left_out: &[&str]) -> Option<Note> {
    let (first, others) = left_out.split_first()?;
    let others = match others.len() {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let reason = format!(
        "this file of the previous deploy{others} did not stay reachable for tabs that are open: the plan has no room left"
    );
    Some(Note { file: (*first).to_owned(), line: None, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMPLE: Capacity = Capacity { files: 100, bytes: 1_000 };

    fn at(hours: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::hours(hours)
    }

    fn file(path: &str, size_bytes: i64, ends: Option<i64>) -> ReplacedFile {
        ReplacedFile { path: path.to_owned(), size_bytes, expires_at: ends.map(at) }
    }

    #[test]
    fn only_names_with_a_content_hash_are_kept_and_only_where_the_new_deploy_has_no_file() {
        let replaced = [
            file("index.html", 1, None),
            file("index-4f9a2b1c.html", 1, None),
            file("_next/static/a/index.html", 1, None),
            file("main.js", 1, None),
            file("assets/a-4f9a2b1c.js", 2, None),
            file("assets/b-4f9a2b1c.js", 4, None),
        ];
        let kept = select(&replaced, |path| path == "assets/b-4f9a2b1c.js", AMPLE, at(0));
        let expected =
            KeptFiles { files: vec![("assets/a-4f9a2b1c.js".to_owned(), at(24))], bytes: 2, note: None };
        assert_eq!(kept, expected);
    }

    #[test]
    fn a_kept_file_keeps_its_end_and_an_expired_one_is_not_resurrected() {
        let replaced = [
            file("a-4f9a2b1c.js", 1, Some(9)),
            file("b-4f9a2b1c.js", 1, Some(10)),
            file("c-4f9a2b1c.js", 1, Some(11)),
            file("d-4f9a2b1c.js", 1, None),
        ];
        let kept = select(&replaced, |_| false, AMPLE, at(10));
        let expected = [("d-4f9a2b1c.js", at(34)), ("c-4f9a2b1c.js", at(11))];
        assert_eq!(kept.files, expected.map(|(path, ends)| (path.to_owned(), ends)));
    }

    #[test]
    fn a_secret_that_an_earlier_deploy_served_is_not_kept() {
        for path in [".git/objects/a-4f9a2b1c.js", ".env-4f9a2b1c.js", "_wr/a-4f9a2b1c.js"] {
            assert_eq!(
                select(&[file(path, 1, None)], |_| false, AMPLE, at(0)),
                KeptFiles::default(),
                "{path}"
            );
        }
    }

    #[test]
    fn deploys_in_a_loop_keep_no_more_than_the_plan_allows() {
        let replaced = [
            file("old-4f9a2b1c.js", 1, Some(20)),
            file("large-4f9a2b1c.js", 90, None),
            file("small-4f9a2b1c.js", 10, None),
        ];
        let paths = |capacity| {
            let kept = select(&replaced, |_| false, capacity, at(0));
            let paths: Vec<String> = kept.files.into_iter().map(|(path, _)| path).collect();
            (paths.concat(), kept.bytes, kept.note.map(|note| note.to_string()).unwrap_or_default())
        };
        let (kept, bytes, note) = paths(Capacity { files: 2, bytes: 1_000 });
        assert_eq!((kept.as_str(), bytes), ("large-4f9a2b1c.jssmall-4f9a2b1c.js", 100));
        assert!(note.starts_with("old-4f9a2b1c.js: this file of the previous deploy did not stay"), "{note}");
        let (kept, bytes, note) = paths(Capacity { files: 9, bytes: 50 });
        assert_eq!((kept.as_str(), bytes), ("small-4f9a2b1c.jsold-4f9a2b1c.js", 11));
        assert!(note.starts_with("large-4f9a2b1c.js: "), "{note}");
        let (kept, bytes, note) = paths(Capacity { files: 9, bytes: 0 });
        assert_eq!((kept.as_str(), bytes), ("", 0));
        assert!(note.contains("deploy and 2 more did not stay"), "{note}");
    }

    #[test]
    fn old_files_are_kept_unless_the_request_says_otherwise() {
        let read = [None, Some(true), Some(false)].map(OldFiles::from_request);
        assert_eq!(read, [OldFiles::Keep, OldFiles::Keep, OldFiles::End]);
    }
}
