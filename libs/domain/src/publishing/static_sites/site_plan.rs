//! The plan of a deploy, before any file is inflated: the site's root, its pages, its other files, and what is left out.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::deploy_notes::Note;
use super::page_slugs::{ExistingPages, HtmlFile, PlannedPage, is_html, plan_pages};
use super::reasons::{Reason, left_out_by_name};
use super::root::{RootError, named_root, root_of};

/// A file of a zip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZipFile<'a> {
    /// Its path from the zip's top.
    pub path: &'a str,
    /// Its size.
    pub size_bytes: u64,
}

/// What a plan depends on besides the files.
#[derive(Debug, Clone, Copy)]
pub struct PlanOptions<'a> {
    /// The root folder that the caller named; `None` finds it.
    pub root: Option<&'a str>,
    /// Larger files are left out.
    pub max_file_bytes: u64,
    /// The pages that the site has.
    pub existing: ExistingPages<'a>,
    /// New pages that the account's plan allows; `None` without a limit.
    pub projects_left: Option<u64>,
}

/// A file that is not served, or that is HTML without a page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DeployListedFile")]
pub struct ListedFile {
    /// Path of the file in the site; of a file outside its root, the path in the zip.
    pub path: String,
    /// Why it is not served, or has no page.
    pub reason: Reason,
}

/// The plan of a deploy. Each file of the zip is in exactly one of its lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SitePlan {
    /// The site's folder in the zip, with a trailing slash; empty for the zip's top.
    pub root: String,
    /// HTML files with a page.
    pub pages: Vec<PlannedPage>,
    /// HTML files that are served without a page.
    pub html: Vec<ListedFile>,
    /// All other files that are served, by path.
    pub files: Vec<String>,
    /// Files that are not served.
    pub left_out: Vec<ListedFile>,
    /// A note for each slug that differs from its path.
    pub notes: Vec<Note>,
}

impl SitePlan {
    /// Plans the site of a zip.
    pub fn new(zip: &[ZipFile<'_>], options: PlanOptions<'_>) -> Result<Self, RootError> {
        let paths = || zip.iter().map(|file| file.path);
        let root = match options.root {
            Some(name) => named_root(name, paths())?,
            None => root_of(paths()),
        };
        let (mut left_out, mut html, mut files) = (Vec::new(), Vec::new(), Vec::new());
        for ZipFile { path, size_bytes } in zip {
            let reason = match path.strip_prefix(root.as_str()) {
                None => Some((*path, Reason::OutsideRoot)),
                Some(path) => left_out_by_name(path)
                    .or((*size_bytes > options.max_file_bytes).then_some(Reason::AssetSizeLimit))
                    .map(|reason| (path, reason)),
            };
            match (reason, path.strip_prefix(root.as_str())) {
                (Some((path, reason)), _) => left_out.push(ListedFile { path: path.to_owned(), reason }),
                (None, Some(path)) if is_html(path) => {
                    html.push(HtmlFile { path, size_bytes: *size_bytes });
                }
                (None, path) => files.extend(path),
            }
        }
        let served: BTreeSet<&str> = html.iter().map(|file| file.path).chain(files.iter().copied()).collect();
        let plan = plan_pages(&html, &served, options.existing, options.projects_left);
        let without_page = plan.without_page.into_iter();
        left_out.sort_unstable();
        files.sort_unstable();
        Ok(Self {
            pages: plan.pages,
            html: without_page.map(|(path, reason)| ListedFile { path, reason }).collect(),
            files: files.into_iter().map(str::to_owned).collect(),
            left_out,
            notes: plan.notes,
            root,
        })
    }

    /// Returns the paths of all files that are served.
    pub fn served(&self) -> impl Iterator<Item = &str> {
        let pages = self.pages.iter().map(|page| &page.path);
        pages.chain(self.html.iter().map(|file| &file.path)).chain(&self.files).map(String::as_str)
    }

    /// Returns whether the site has no HTML at all.
    pub fn has_no_html(&self) -> bool {
        self.pages.is_empty() && self.html.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn plan(zip: &[(&str, u64)], root: Option<&str>, projects_left: Option<u64>) -> SitePlan {
        let zip: Vec<ZipFile<'_>> =
            zip.iter().map(|(path, size_bytes)| ZipFile { path, size_bytes: *size_bytes }).collect();
        let (by_path, slugs) = (BTreeMap::new(), BTreeSet::new());
        let existing = ExistingPages { by_path: &by_path, slugs: &slugs };
        let options = PlanOptions { root, max_file_bytes: 1_000_000, existing, projects_left };
        SitePlan::new(&zip, options).unwrap()
    }

    fn listed(files: &[ListedFile]) -> Vec<(&str, &str)> {
        files.iter().map(|file| (file.path.as_str(), file.reason.as_str())).collect()
    }

    #[test]
    fn every_file_of_a_project_is_served_or_listed_with_a_reason() {
        let zip = [
            ("app/package.json", 1),
            ("app/.env", 1),
            ("app/dist/.env", 1),
            ("app/dist/_redirects", 1),
            ("app/dist/_wr/x.js", 1),
            ("app/dist/big.bin", 1_000_001),
            ("app/dist/index.html", 1),
            ("app/dist/large.html", 600_000),
            ("app/dist/a.js", 1),
            ("__MACOSX/x", 1),
        ];
        let plan = plan(&zip, None, None);
        assert_eq!(plan.root, "app/dist/");
        assert_eq!(
            listed(&plan.left_out),
            [
                (".env", "never_served"),
                ("__MACOSX/x", "outside_root"),
                ("_redirects", "configuration"),
                ("_wr/x.js", "reserved"),
                ("app/.env", "outside_root"),
                ("app/package.json", "outside_root"),
                ("big.bin", "asset_size_limit"),
            ]
        );
        assert_eq!(listed(&plan.html), [("large.html", "too_large")]);
        assert_eq!((plan.pages.len(), plan.pages[0].path.as_str()), (1, "index.html"));
        assert_eq!(plan.files, ["a.js"]);
        assert_eq!(plan.served().collect::<Vec<_>>(), ["index.html", "large.html", "a.js"]);
    }

    #[test]
    fn a_named_root_is_used() {
        let plan = plan(&[("a/index.html", 1), ("b/index.html", 1)], Some("b"), Some(0));
        assert_eq!(
            (plan.root.as_str(), listed(&plan.left_out)),
            ("b/", vec![("a/index.html", "outside_root")])
        );
        assert_eq!(listed(&plan.html), [("index.html", "project_limit")]);
        assert!(!plan.has_no_html());
    }

    proptest! {
        #[test]
        fn each_file_is_in_exactly_one_list(
            files in prop::collection::btree_map("(a|dist|\\.git|_wr)(/(b|index|\\.env|package)(\\.html|\\.json)?){0,2}", 0u64..2_000_000, 0..12),
            left in 0u64..4,
        ) {
            let zip: Vec<(&str, u64)> = files.iter().map(|(path, size)| (path.as_str(), *size)).collect();
            let plan = plan(&zip, None, Some(left));
            let in_zip = |path: &str| format!("{}{path}", plan.root);
            let outside = |file: &ListedFile| match file.reason {
                Reason::OutsideRoot => file.path.clone(),
                _ => in_zip(&file.path),
            };
            let found = plan.served().map(in_zip).chain(plan.left_out.iter().map(outside));
            let mut found: Vec<String> = found.collect();
            found.sort_unstable();
            prop_assert_eq!(found, files.keys().cloned().collect::<Vec<_>>());
            prop_assert!(plan.left_out.iter().all(|file| !file.reason.is_served()));
            prop_assert!(plan.html.iter().all(|file| file.reason.is_served()));
        }
    }
}
