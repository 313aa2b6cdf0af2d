//! Finds the site's root in a zip, which may contain the folder, its contents, or the whole project.

use std::collections::BTreeSet;

use super::paths;

/// Output folders of common builds.
const BUILDS: [&str; 6] = ["dist", "out", "build", "public", "_site", "docs"];

/// Returns the site's root folder with a trailing slash, empty for the whole zip; `None` if the zip contains no page.
///
/// The root is the zip itself or its single top folder, unless that is a project with a build folder. Without an
/// `index.html` in any of these, it is the folder of the one nearest to the top.
pub fn root_of<'a>(files: impl Iterator<Item = &'a str>) -> Option<String> {
    let files: BTreeSet<&str> = files.collect();
    let top = single_top_folder(&files);
    let has = |folder: &str, name: &str| files.contains(format!("{folder}{name}").as_str());
    let builds = BUILDS.map(|build| format!("{top}{build}/"));
    let is_project = has(&top, "package.json");
    let build = builds.into_iter().find(|build| has(build, "index.html"));
    match build {
        Some(build) if is_project || !has(&top, "index.html") => return Some(build),
        _ if has(&top, "index.html") => return Some(top),
        _ => {}
    }
    let folder = |file: &&str| file.len() - paths::name_of(file).len();
    let least_deep = |wanted: &dyn Fn(&str) -> bool| {
        let found = files.iter().filter(|file| wanted(file));
        found
            .min_by_key(|file| (file.matches('/').count(), **file))
            .map(|file| file[..folder(file)].to_owned())
    };
    least_deep(&|file| paths::name_of(file) == "index.html").or_else(|| {
        // Without any index, there may still be pages at the top.
        let is_at_top = |file: &str| {
            paths::is_page(file) && file.strip_prefix(&top).is_some_and(|name| !name.contains('/'))
        };
        if files.iter().any(|file| is_at_top(file)) {
            Some(top.clone())
        } else {
            least_deep(&|file| paths::is_page(file))
        }
    })
}

/// Returns the folder that contains all files, with a trailing slash; empty if there is none.
fn single_top_folder(files: &BTreeSet<&str>) -> String {
    let mut folders = files.iter().map(|file| file.split_once('/').map(|(folder, _)| folder));
    match folders.next().flatten() {
        Some(first) if folders.all(|folder| folder == Some(first)) => format!("{first}/"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_site_in_every_layout() {
        for (files, root) in [
            (["index.html", "a.css"].as_slice(), ""),
            (&["site/index.html", "site/a.css"], "site/"),
            (&["package.json", "index.html", "src/main.ts", "dist/index.html"], "dist/"),
            (&["package/package.json", "package/dist/index.html"], "package/dist/"),
            (&["readme.md", "out/index.html"], "out/"),
            (&["readme.md", "build/index.html", "src/a.js"], "build/"),
            // A page of that name is no build folder.
            (&["index.html", "build/index.html", "a.css"], ""),
            (&["p/package.json", "p/lib/site/index.html", "p/lib/site/sub/index.html"], "p/lib/site/"),
            (&["about.html", "contact.html"], ""),
            (&["x/readme", "y/z/about.html"], "y/z/"),
        ] {
            assert_eq!(root_of(files.iter().copied()).as_deref(), Some(root), "{files:?}");
        }
    }

    #[test]
    fn without_pages_there_is_no_site() {
        assert_eq!(root_of(["a.css", "b/c.js"].into_iter()), None);
        assert_eq!(root_of(std::iter::empty()), None);
    }
}
