//! Which HTML files of a site become pages of the API, and their slugs.
//!
//! Files become pages in the order `index.html`, depth, path, while the plan has projects left; the others are served at
//! their paths all the same. A slug is what the API calls a page by, so it is never the address of another file:
//! `/<slug>` answers with the page's own file or leads to it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::address::{self, INDEX_FILE};
use super::deploy_notes::{Note, Notes, shown};
use super::reasons::Reason;
use super::site_path::{RequestPath, depth_of, name_of};
use crate::pages;

/// Longest beginning of a slug before its suffix.
const STEM_BYTES_MAX: usize = 190;
/// Stands for a segment without any letter or digit of a slug.
const NAMELESS: &str = "page";

/// An HTML file of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HtmlFile<'a> {
    /// Its path in the site.
    pub path: &'a str,
    /// Its size.
    pub size_bytes: u64,
}

/// The pages that a site has before a deploy.
#[derive(Debug, Clone, Copy)]
pub struct ExistingPages<'a> {
    /// Slugs of the pages from the live deploy, by the path of their file. They are kept where that is possible.
    pub by_path: &'a BTreeMap<String, String>,
    /// Slugs of all pages of the subdomain. A page with one of them is updated, and is no new project.
    pub slugs: &'a BTreeSet<String>,
}

/// An HTML file that becomes a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPage {
    /// Path of the file in the site.
    pub path: String,
    /// Slug of the page.
    pub slug: String,
}

/// The pages of a deploy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PagePlan {
    /// The files that become pages, in their order.
    pub pages: Vec<PlannedPage>,
    /// The files that don't, with the reason.
    pub without_page: Vec<(String, Reason)>,
    /// A note for each slug that differs from its path.
    pub notes: Vec<Note>,
}

/// Returns whether a file is HTML by its name.
pub fn is_html(path: &str) -> bool {
    let name = name_of(path).to_ascii_lowercase();
    name.ends_with(".html") || name.ends_with(".htm")
}

/// Plans the pages of a deploy. `files` are all files of the site, HTML included; `projects_left` is what the plan
/// allows besides the existing pages, `None` without a limit. The result does not depend on the order of `html`.
pub fn plan_pages(
    html: &[HtmlFile<'_>],
    files: &BTreeSet<&str>,
    existing: ExistingPages<'_>,
    projects_left: Option<u64>,
) -> PagePlan {
    let mut html: Vec<&HtmlFile<'_>> = html.iter().collect();
    html.sort_by_key(|file| (file.path != INDEX_FILE, depth_of(file.path), file.path));
    let (small, large): (Vec<&HtmlFile<'_>>, Vec<&HtmlFile<'_>>) =
        html.into_iter().partition(|file| file.size_bytes <= pages::MAX_HTML_BYTES as u64);
    let mut plan = PagePlan::default();
    plan.without_page.extend(large.iter().map(|file| (file.path.to_owned(), Reason::TooLarge)));
    let mut slugs = Slugs { files, existing, taken: BTreeMap::new(), suffixes: HashMap::new() };
    let kept = slugs.keep(&small);
    let mut left = projects_left.unwrap_or(u64::MAX);
    let mut notes = Notes::default();
    for file in small {
        let found = kept.get(file.path).map(|slug| (slug.clone(), None));
        let (slug, why) = found.unwrap_or_else(|| slugs.new_slug(file.path));
        if !existing.slugs.contains(&slug) {
            if left == 0 {
                plan.without_page.push((file.path.to_owned(), Reason::ProjectLimit));
                continue;
            }
            left -= 1;
        }
        if let Some(why) = why {
            notes.push_file(file.path, format!("its page has the slug `{slug}`: {why}"));
        }
        slugs.taken.insert(slug.clone(), file.path.to_owned());
        plan.pages.push(PlannedPage { path: file.path.to_owned(), slug });
    }
    plan.notes = notes.finish();
    plan
}

/// The slugs assigned so far.
struct Slugs<'a> {
    files: &'a BTreeSet<&'a str>,
    existing: ExistingPages<'a>,
    /// Paths by slug.
    taken: BTreeMap<String, String>,
    /// The last suffix of each stem, so that many equal stems take linear time.
    suffixes: HashMap<String, u32>,
}

impl Slugs<'_> {
    /// Takes the slugs of the live deploy that its files can keep, by path.
    fn keep(&mut self, html: &[&HtmlFile<'_>]) -> BTreeMap<String, String> {
        let mut kept = BTreeMap::new();
        for file in html {
            let Some(slug) = self.existing.by_path.get(file.path) else { continue };
            if self.conflict(slug, file.path).is_none() {
                self.taken.insert(slug.clone(), file.path.to_owned());
                kept.insert(file.path.to_owned(), slug.clone());
            }
        }
        kept
    }

    /// Returns a free slug, and why it differs from the path.
    fn new_slug(&mut self, path: &str) -> (String, Option<String>) {
        let written = slug_of(path);
        let natural = with_names(&written);
        let Some(conflict) = self.conflict(&natural, path) else {
            let why = (natural != written).then(|| "its name has no letter or digit of a slug".to_owned());
            return (natural, why);
        };
        let end = natural.len().min(STEM_BYTES_MAX);
        let stem = natural[..end].trim_end_matches('/').to_owned();
        loop {
            let last = self.suffixes.entry(stem.clone()).or_insert(1);
            *last += 1;
            let slug = format!("{stem}-{last}");
            if self.conflict(&slug, path).is_none() && !self.existing.slugs.contains(&slug) {
                return (slug, Some(conflict));
            }
        }
    }

    /// Returns why a file can't have a slug; `None` if it can.
    fn conflict(&self, slug: &str, path: &str) -> Option<String> {
        if let Some(error) = pages::check_slug(slug).first() {
            return Some(error.message.clone());
        }
        if let Some(other) = self.taken.get(slug).filter(|other| *other != path) {
            return Some(format!("`{}` has the slug `{slug}`", shown(other)));
        }
        let other = file_at_slug(slug, self.files).filter(|other| other != path);
        if let Some(other) = other {
            return Some(format!("`{}` is the address of `{}`", pages::path_of(slug), shown(&other)));
        }
        let is_index = slug == pages::INDEX && depth_of(path) > 0;
        is_index.then(|| "`index` is the slug of the site's first page".to_owned())
    }
}

/// Returns the file that answers at the address of a slug, or that it redirects to.
fn file_at_slug(slug: &str, files: &BTreeSet<&str>) -> Option<String> {
    let request = RequestPath::parse(&pages::path_of(slug))?;
    address::candidates(&request).into_iter().find(|file| files.contains(file.as_str()))
}

/// Returns the slug of a path: without extension and a final `index`, in lower case, with `-` in place of other
/// characters. It may be no valid slug.
fn slug_of(path: &str) -> String {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem).to_lowercase();
    let stem = match stem.rsplit_once('/') {
        Some((folder, pages::INDEX)) => folder,
        _ => &stem,
    };
    let mut slug = String::with_capacity(stem.len());
    for c in stem.chars() {
        match c {
            '/' | 'a'..='z' | '0'..='9' => slug.push(c),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug
}

/// Returns a slug with a name in place of segments without letters and digits.
fn with_names(slug: &str) -> String {
    let named = |segment: &str| {
        if segment.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
            segment.to_owned()
        } else {
            NAMELESS.to_owned()
        }
    };
    slug.split('/').map(named).collect::<Vec<_>>().join("/")
}
