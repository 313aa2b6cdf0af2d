//! The files that an address may mean, and which of them it is.
//!
//! `/x` is the file `x`, else `x.html`, else a redirect to `/x/` if `x/index.html` exists. `/x/` is `x/index.html`,
//! else a redirect to `/x` if that answers. The rule is split in two, so that one query finds all files it needs.

use super::site_path::{RequestPath, address_of, folder_address, folder_of, name_of};
use crate::pages;

/// File that answers a folder.
pub const INDEX_FILE: &str = "index.html";
/// File that answers every address without a file, with the status 200.
pub const FALLBACK_FILE: &str = "200.html";
/// File that answers addresses without a file below its folder, with the status 404.
pub const NOT_FOUND_FILE: &str = "404.html";
/// A `404.html` in deeper folders is a file like any other, so that one request looks for a bounded number of files.
pub const NOT_FOUND_DEPTH_MAX: usize = 32;

/// What an address answers from the files of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAt {
    /// This file.
    File(String),
    /// A permanent redirect (308) to this address, percent-encoded and without a query.
    Moved(String),
    /// Neither.
    Missing,
}

/// Returns the files that decide what an address answers, the one that wins first.
pub fn candidates(request: &RequestPath) -> Vec<String> {
    let path = request.path();
    if request.is_root() {
        return vec![INDEX_FILE.to_owned()];
    }
    let (file, html, index) = (path.to_owned(), format!("{path}.html"), format!("{path}/{INDEX_FILE}"));
    if request.is_folder() { vec![index, file, html] } else { vec![file, html, index] }
}

/// Decides what an address answers. `exists` is called for [`candidates`] alone.
pub fn file_at(request: &RequestPath, exists: impl Fn(&str) -> bool) -> FileAt {
    let found = candidates(request).into_iter().enumerate().find(|(_, file)| exists(file));
    match found {
        None => FileAt::Missing,
        Some((0, file)) => FileAt::File(file),
        Some(_) if request.is_folder() => FileAt::Moved(address_of(request.path())),
        Some((1, file)) => FileAt::File(file),
        Some(_) => FileAt::Moved(folder_address(request.path())),
    }
}

/// Returns the `404.html` files for an address, the nearest first: in its folder and in all folders above.
pub fn not_found_candidates(request: &RequestPath) -> Vec<String> {
    let mut folder = if request.is_folder() { request.path() } else { folder_of(request.path()) };
    let mut depth = folder.split('/').count();
    let mut found = Vec::new();
    while !folder.is_empty() {
        if depth <= NOT_FOUND_DEPTH_MAX {
            found.push(format!("{folder}/{NOT_FOUND_FILE}"));
        }
        folder = folder_of(folder);
        depth -= 1;
    }
    found.push(NOT_FOUND_FILE.to_owned());
    found
}

/// Returns the address at which sites list a file: without `index.html` and without `.html`.
pub fn listed_address(path: &str) -> String {
    match (path.strip_suffix(INDEX_FILE), path.strip_suffix(".html")) {
        (Some(folder), _) if folder.is_empty() || folder.ends_with('/') => {
            folder_address(folder.trim_end_matches('/'))
        }
        (_, Some(stem)) if !stem.is_empty() && !stem.ends_with('/') => address_of(stem),
        _ => address_of(path),
    }
}

/// Returns whether a file may answer addresses other than its own, if no rule says so.
pub fn is_fallback(path: &str) -> bool {
    path == INDEX_FILE || path == FALLBACK_FILE || name_of(path) == NOT_FOUND_FILE
}

/// Slugs of the pages that an address may mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageSlugs {
    /// The slug at its own address.
    pub own: Option<String>,
    /// The slug that the address redirects to, if a page that the API made has it.
    pub canonical: Option<String>,
}

/// Returns the slugs of the pages that an address may mean.
pub fn slugs_at(request: &RequestPath) -> PageSlugs {
    let address = request.address();
    // The page `index` is at `/`.
    let own = pages::slug_at(&address).filter(|slug| *slug != pages::INDEX || request.is_root());
    PageSlugs { own: own.map(str::to_owned), canonical: pages::canonical_slug(&address).map(str::to_owned) }
}

/// Returns all addresses whose answer changes with a page: those that mean its slug, and those that mean the file it
/// shows. Beyond these it answers only as a fallback and by rules.
pub fn addresses_of_page(slug: &str, path: Option<&str>) -> Vec<String> {
    let mut addresses = vec![pages::path_of(slug)];
    for suffix in ["", ".html", "/index", "/index.html"] {
        addresses.extend([format!("/{slug}{suffix}"), format!("/{slug}{suffix}/")]);
    }
    if let Some(path) = path {
        let stem = path.strip_suffix(".html");
        let folder = (name_of(path) == INDEX_FILE).then(|| folder_of(path));
        for path in [Some(path), stem, folder].into_iter().flatten() {
            addresses.extend([address_of(path), folder_address(path)]);
        }
    }
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn request(sent: &str) -> RequestPath {
        RequestPath::parse(sent).unwrap()
    }

    fn answer(files: &[&str], sent: &str) -> String {
        match file_at(&request(sent), |path| files.contains(&path)) {
            FileAt::File(path) => path,
            FileAt::Moved(to) => format!("308 {to}"),
            FileAt::Missing => "missing".to_owned(),
        }
    }

    #[test]
    fn addresses_answer_as_documented() {
        for (files, sent, expected) in [
            (["x"].as_slice(), "/x", "x"),
            (&["x"], "/x/", "308 /x"),
            (&["x", "x.html"], "/x", "x"),
            (&["x.html"], "/x", "x.html"),
            (&["x.html"], "/x.html", "x.html"),
            (&["x.html"], "/x.html/", "308 /x.html"),
            (&["x.html"], "/x/", "308 /x"),
            (&["x/index.html"], "/x", "308 /x/"),
            (&["x/index.html"], "/x/", "x/index.html"),
            (&["x/index.html"], "/x/index.html", "x/index.html"),
            (&["x/index.html"], "/x/index", "x/index.html"),
            (&["x.html", "x/index.html"], "/x", "x.html"),
            (&["x.html", "x/index.html"], "/x/", "x/index.html"),
            (&["index.html"], "/", "index.html"),
            (&["index.html"], "/index.html", "index.html"),
            (&["index.html"], "/index", "index.html"),
            (&["x.html"], "/", "missing"),
            (&["x.html"], "/X", "missing"),
            (&["x.htm"], "/x", "missing"),
            (&["v1.2.html"], "/v1.2", "v1.2.html"),
            (&["日本語.html"], "/%E6%97%A5%E6%9C%AC%E8%AA%9E/", "308 /%E6%97%A5%E6%9C%AC%E8%AA%9E"),
            (&["日本語/index.html"], "/日本語", "308 /%E6%97%A5%E6%9C%AC%E8%AA%9E/"),
            (&["evil.com/index.html"], "//evil.com", "308 /evil.com/"),
            (&["a b+c.html"], "/a%20b+c", "a b+c.html"),
        ] {
            assert_eq!(answer(files, sent), expected, "{files:?} {sent}");
        }
    }

    #[test]
    fn the_nearest_404_page_comes_first() {
        let found = |sent: &str| not_found_candidates(&request(sent));
        assert_eq!(found("/"), ["404.html"]);
        assert_eq!(found("/a"), ["404.html"]);
        assert_eq!(found("/a/"), ["a/404.html", "404.html"]);
        assert_eq!(found("/a/b/c"), ["a/b/404.html", "a/404.html", "404.html"]);
    }

    #[test]
    fn a_path_of_many_folders_asks_for_few_files() {
        let deep = format!("/{}", "a/".repeat(512));
        assert_eq!(not_found_candidates(&request(&deep)).len(), NOT_FOUND_DEPTH_MAX + 1);
        assert_eq!(
            not_found_candidates(&request(&deep))[0].len(),
            2 * NOT_FOUND_DEPTH_MAX + "404.html".len()
        );
    }

    #[test]
    fn sites_list_pages_without_index_and_extension() {
        for (path, address) in [
            ("index.html", "/"),
            ("docs/index.html", "/docs/"),
            ("my-index.html", "/my-index"),
            ("a b.html", "/a%20b"),
            ("v1.2.html", "/v1.2"),
            ("a.htm", "/a.htm"),
            (".html", "/.html"),
            ("a/.html", "/a/.html"),
        ] {
            assert_eq!(listed_address(path), address);
            assert_eq!(answer(&[path], address), path);
        }
    }

    #[test]
    fn an_address_means_its_slug_or_redirects_to_another() {
        let slugs = |sent: &str| {
            let found = slugs_at(&request(sent));
            (found.own.unwrap_or_default(), found.canonical.unwrap_or_default())
        };
        for (sent, own, canonical) in [
            ("/", "index", ""),
            ("/index", "", "index"),
            ("/about", "about", ""),
            ("/about/", "", "about"),
            ("/about.html", "", "about"),
            ("/%61bout", "about", ""),
            ("/docs/index", "docs/index", "docs"),
            ("/About", "", ""),
        ] {
            assert_eq!(slugs(sent), (own.to_owned(), canonical.to_owned()), "{sent}");
        }
    }

    /// The rule as its documentation says it, over the texts of addresses.
    fn described(files: &BTreeSet<String>, sent: &str) -> String {
        let has = |path: &str| files.contains(path.trim_start_matches('/'));
        let index = format!("{}/index.html", sent.trim_end_matches('/'));
        if let Some(bare) = sent.strip_suffix('/') {
            return if has(&index) {
                index[1..].to_owned()
            } else if !bare.is_empty() && (has(bare) || has(&format!("{bare}.html"))) {
                format!("308 {bare}")
            } else {
                "missing".to_owned()
            };
        }
        if has(sent) {
            sent[1..].to_owned()
        } else if has(&format!("{sent}.html")) {
            format!("{}.html", &sent[1..])
        } else if has(&index) {
            format!("308 {sent}/")
        } else {
            "missing".to_owned()
        }
    }

    proptest! {
        #[test]
        fn every_address_answers_as_described(
            files in prop::collection::btree_set("(a|b|index)(/(a|b|index)){0,2}(\\.html)?", 0..8),
            sent in "(/(a|b|index)(\\.html)?){1,3}/?|/",
        ) {
            let names: Vec<&str> = files.iter().map(String::as_str).collect();
            let answered = answer(&names, &sent);
            prop_assert_eq!(&answered, &described(&files, &sent), "{:?} {}", files, sent);
            // A redirect leads to a file at once.
            if let Some(to) = answered.strip_prefix("308 ") {
                prop_assert!(files.contains(&answer(&names, to)), "{:?} {}", files, sent);
            }
        }

        #[test]
        fn every_file_answers_at_its_own_path(
            files in prop::collection::btree_set("(a|b|index)(/(a|b|index)){0,2}(\\.html)?", 1..8),
        ) {
            let names: Vec<&str> = files.iter().map(String::as_str).collect();
            for file in &files {
                prop_assert_eq!(&answer(&names, &address_of(file)), file);
            }
        }

        #[test]
        fn a_page_changes_no_address_besides_those_listed(
            slug in "(aa|ab|index)(/(a|index)){0,2}",
            path in prop::option::of("(aa|ab|index|a b)(/(a|index)){0,2}(\\.html|\\.htm)?"),
            sent in "(/(aa|ab|a|a b|index)){0,4}(\\.html?)?/?",
        ) {
            let request = RequestPath::parse(&format!("/{sent}")).unwrap();
            let slugs = slugs_at(&request);
            let by_slug = [slugs.own, slugs.canonical].iter().flatten().any(|one| *one == slug);
            let by_path = path.as_ref().is_some_and(|path| candidates(&request).contains(path));
            if by_slug || by_path {
                let listed = addresses_of_page(&slug, path.as_deref());
                prop_assert!(listed.contains(&request.address()), "{} {:?}", sent, listed);
            }
        }
    }
}
