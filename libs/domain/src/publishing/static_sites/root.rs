//! Finds the folder of a zip that is the site: a zip may contain the site, its folder, or the whole project.

use std::collections::BTreeSet;

use super::reasons::is_never_served;
use super::site_path::{self, PathError};

/// Output folders of common builds.
const BUILDS: [&str; 5] = ["dist", "out", "build", "_site", "public"];
/// Output folders of a whole project, which has a `package.json`. They precede an `index.html` beside it: bundlers
/// read that one as their source.
const PROJECT_BUILDS: [&str; 3] = ["dist", "out", "build"];

/// Why a named root is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RootError {
    /// The name is no path.
    #[error("root `{0}` is no folder of the zip: {1}")]
    Invalid(String, PathError),
    /// No file lies in the folder.
    #[error("the zip has no file in the folder `{0}`; root is a path from the zip's top, such as `dist`")]
    Empty(String),
    /// Files of the folder are never served.
    #[error("root `{0}` lies in a folder that is never served; name another folder, such as `dist`")]
    NeverServed(String),
}

/// Returns the site's root folder with a trailing slash; empty for the zip's top. Files that are never served don't
/// count.
///
/// A single top folder is unwrapped, again and again. Then the root is, the first that applies:
/// 1. in a project with a `package.json`: the one of `dist`, `out` and `build` that holds an `index.html`;
/// 2. the top, if it has an `index.html`;
/// 3. the one of `dist`, `out`, `build`, `_site` and `public` that holds an `index.html`;
/// 4. the top.
pub fn root_of<'a>(files: impl IntoIterator<Item = &'a str>) -> String {
    let files: BTreeSet<&str> = files.into_iter().filter(|path| !is_never_served(path)).collect();
    let top = unwrapped_top(&files);
    let has = |name: &str| files.contains(format!("{top}{name}").as_str());
    let only_build = |builds: &[&str]| {
        let mut found = builds.iter().filter(|build| has(&format!("{build}/index.html")));
        found.next().filter(|_| found.next().is_none()).map(|build| format!("{top}{build}/"))
    };
    let of_project = if has("package.json") { only_build(&PROJECT_BUILDS) } else { None };
    match of_project {
        Some(build) => build,
        None if has("index.html") => top.to_owned(),
        None => only_build(&BUILDS).unwrap_or_else(|| top.to_owned()),
    }
}

/// Returns the root that the caller named, with a trailing slash; empty for the zip's top, which `/`, `.` and an empty
/// name stand for.
pub fn named_root<'a>(name: &str, files: impl IntoIterator<Item = &'a str>) -> Result<String, RootError> {
    let bare = name.trim_matches('/');
    if bare.is_empty() || bare == "." {
        return Ok(String::new());
    }
    let folder = site_path::of_entry(bare.as_bytes())
        .map_err(|error| RootError::Invalid(super::deploy_notes::shown(name), error))?;
    let folder = format!("{folder}/");
    if is_never_served(&folder) {
        return Err(RootError::NeverServed(folder));
    }
    let mut files = files.into_iter();
    if files.any(|path| path.starts_with(&folder)) { Ok(folder) } else { Err(RootError::Empty(folder)) }
}

/// Returns the deepest folder that contains all files alone in each folder above it, with a trailing slash; empty if
/// the zip's top has files or several folders.
fn unwrapped_top<'a>(files: &BTreeSet<&'a str>) -> &'a str {
    let (Some(first), Some(last)) = (files.first(), files.last()) else { return "" };
    // The set is sorted, so a prefix of its first and last path is a prefix of all.
    let shared = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
    let end = first.as_bytes()[..shared].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    &first[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_site_in_every_layout() {
        for (files, root) in [
            (["index.html", "a.css"].as_slice(), ""),
            // A single folder is unwrapped, again and again.
            (&["site/index.html", "site/a.css"], "site/"),
            (&["a/b/c/index.html", "a/b/c/x/y.css"], "a/b/c/"),
            (&["a/b/index.html", "a/c.html"], "a/"),
            (&["dist/index.html", "dist/assets/x.js"], "dist/"),
            (&["site/index.html", "__MACOSX/site/._index.html", ".DS_Store"], "site/"),
            (&["site/index.html", ".git/config"], "site/"),
            // A whole project serves its build.
            (&["package.json", "src/main.ts", "dist/index.html"], "dist/"),
            (&["package.json", "index.html", "src/main.ts", "dist/index.html"], "dist/"),
            (&["package.json", "out/index.html", "public/index.html"], "out/"),
            (&["app/package.json", "app/build/index.html", "app/src/x.js"], "app/build/"),
            // The top, where it has an index.
            (&["package.json", "index.html", "docs/index.html"], ""),
            (&["index.html", "build/index.html", "a.css"], ""),
            (&["index.html", "public/index.html", "dist/index.html"], ""),
            (&["package.json", "index.html", "dist/index.html", "out/index.html"], ""),
            (&["package.json", "index.html", "public/index.html"], ""),
            // The one build folder with an index.
            (&["readme.md", "out/index.html"], "out/"),
            (&["hugo.toml", "content/a.md", "public/index.html"], "public/"),
            (&["_config.yml", "_site/index.html"], "_site/"),
            (&["readme.md", "build/index.html", "dist/x.js"], "build/"),
            // All else serves everything.
            (&["en/index.html", "de/index.html"], ""),
            (&["docs/index.html", "blog/index.html"], ""),
            (&["web/x.html", "build/readme.md"], ""),
            (&["web/index.html", "build/x.js"], ""),
            (&["dist/index.html", "out/index.html"], ""),
            (&["package.json", "src/x.ts"], ""),
            (&["readme.md", "build/sub/index.html"], ""),
            (&["about.html", "contact.html"], ""),
            (&["ab/x.html", "a/x.html"], ""),
            (&["abc/x.html", "abd/x.html"], ""),
            (&[".git/config"], ""),
            (&[], ""),
        ] {
            assert_eq!(root_of(files.iter().copied()), root, "{files:?}");
        }
    }

    #[test]
    fn a_named_root_must_have_files() {
        let files = ["web/app/index.html", "build/x.js"];
        for (name, root) in
            [("web", "web/"), ("/web/app/", "web/app/"), ("./web", "web/"), ("", ""), ("/", ""), (".", "")]
        {
            assert_eq!(named_root(name, files), Ok(root.to_owned()), "{name}");
        }
        assert_eq!(named_root("we", files), Err(RootError::Empty("we/".to_owned())));
        assert_eq!(named_root("../x", files), Err(RootError::Invalid("../x".to_owned(), PathError::Upwards)));
        let message = named_root("dist", files).unwrap_err().to_string();
        assert!(message.contains("no file in the folder `dist/`"), "{message}");
    }

    #[test]
    fn a_named_root_in_a_never_served_folder_is_rejected() {
        let files =
            [".aws/s/a.html", "web/.Git/a.html", "__MACOSX/a.html", "x~/a.html", "web/.github/a.html"];
        for root in [".aws", ".aws/s", "web/.Git", "__MACOSX"] {
            let folder = format!("{root}/");
            assert_eq!(named_root(root, files), Err(RootError::NeverServed(folder)), "{root}");
        }
        for root in ["web", "x~", "web/.github"] {
            assert_eq!(named_root(root, files), Ok(format!("{root}/")), "{root}");
        }
    }
}
