//! What a request to a deployed site answers: the order of rules, files and fallbacks.
//!
//! Reserved addresses are the platform's. Then the first that applies: a rule with `!`, a file, a page of the API at
//! this slug, another rule, `200.html` (or the `index.html` of a single-page application), the nearest `404.html` up
//! the tree, the page `404`. The order is decided in two steps, so that one query looks up all files: [`Resolver::files`]
//! returns the paths that matter, and [`Resolver::resolve`] decides from those that exist.

use super::address::{self, FALLBACK_FILE, FileAt, INDEX_FILE};
use super::reasons::is_never_served;
use super::redirects::{Redirects, RequestQuery, RuleMatch};
use super::site_path::{self, RequestPath, address_of};
use crate::pages;

/// The rules of one site.
#[derive(Debug, Clone, Copy)]
pub struct Resolver<'a> {
    /// The parsed `_redirects`.
    pub redirects: &'a Redirects,
    /// Whether addresses without a file answer with `index.html`.
    pub spa: bool,
}

/// A page of the API with the slug of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageAt<'a> {
    /// The page of a deployed file, at this path.
    Deployed(&'a str),
    /// A page that the API made.
    Made,
    /// A page that the API made with this slug, which the request means and which has another address: `/x.html` for
    /// the page at `/x`.
    MadeAt(&'a str),
}

/// What a request answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// The platform's own answer: the address is reserved.
    Reserved,
    /// The file at this path, with the status 200 or 404.
    File {
        /// The path of the file.
        path: String,
        /// 200 or 404.
        status: u16,
    },
    /// A redirect to this `Location`.
    Redirect {
        /// The `Location`, as visible ASCII.
        location: String,
        /// 301, 302, 307 or 308.
        status: u16,
    },
    /// The page that the API made.
    Page,
    /// The page with the slug `404`, or the platform's own message.
    NotFound,
}

impl Resolver<'_> {
    /// Returns the files to look up, without duplicates.
    pub fn files(&self, request: &RequestPath, query: &str) -> Vec<String> {
        let mut files = Vec::new();
        let query = RequestQuery::new(query);
        let rules =
            [self.redirects.before_files(request, &query), self.redirects.after_files(request, &query)];
        for rule in rules.into_iter().flatten() {
            if let RuleMatch::Rewrite { request, .. } = rule {
                files.extend(address::candidates(&request));
            }
        }
        files.extend(address::candidates(request));
        files.extend(self.fallbacks().map(str::to_owned));
        files.extend(address::not_found_candidates(request));
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Decides what a request answers. `exists` is called for [`Self::files`] alone; `page` is the page with the slug of
    /// the request.
    pub fn resolve(
        &self,
        request: &RequestPath,
        query: &str,
        exists: impl Fn(&str) -> bool,
        page: Option<PageAt<'_>>,
    ) -> Resolution {
        if site_path::is_reserved(request.path()) {
            return Resolution::Reserved;
        }
        // Deploys of earlier versions stored them.
        let exists = |path: &str| !is_never_served(path) && exists(path);
        let parsed = RequestQuery::new(query);
        if let Some(rule) = self.redirects.before_files(request, &parsed) {
            return self.of_rule(rule, request, &exists);
        }
        match address::file_at(request, exists) {
            FileAt::File(path) => return Resolution::File { path, status: 200 },
            FileAt::Moved(to) => return moved(&to, &parsed),
            FileAt::Missing => {}
        }
        match page {
            Some(PageAt::Deployed(path)) => return moved(&address_of(path), &parsed),
            Some(PageAt::Made) => return Resolution::Page,
            Some(PageAt::MadeAt(slug)) => return moved(&pages::path_of(slug), &parsed),
            None => {}
        }
        if let Some(rule) = self.redirects.after_files(request, &parsed) {
            return self.of_rule(rule, request, &exists);
        }
        match self.fallbacks().find(|path| exists(path)) {
            Some(path) => Resolution::File { path: path.to_owned(), status: 200 },
            None => not_found(request, &exists),
        }
    }

    /// The files that answer addresses without a file, with the status 200.
    fn fallbacks(&self) -> impl Iterator<Item = &'static str> {
        [FALLBACK_FILE].into_iter().chain(self.spa.then_some(INDEX_FILE))
    }

    fn of_rule(&self, rule: RuleMatch, request: &RequestPath, exists: &impl Fn(&str) -> bool) -> Resolution {
        match rule {
            RuleMatch::Redirect { location, status } => Resolution::Redirect { location, status },
            RuleMatch::Rewrite { request: target, status } => {
                let found = address::candidates(&target).into_iter().find(|path| exists(path));
                match found {
                    Some(path) => Resolution::File { path, status },
                    None => not_found(request, exists),
                }
            }
        }
    }
}

fn moved(to: &str, query: &RequestQuery<'_>) -> Resolution {
    Resolution::Redirect { location: query.appended_to(to), status: 308 }
}

fn not_found(request: &RequestPath, exists: &impl Fn(&str) -> bool) -> Resolution {
    let nearest = address::not_found_candidates(request).into_iter().find(|path| exists(path));
    nearest.map_or(Resolution::NotFound, |path| Resolution::File { path, status: 404 })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn resolved(rules: &str, spa: bool, files: &[&str], page: Option<PageAt<'_>>, sent: &str) -> String {
        let (redirects, _) = Redirects::parse(rules.as_bytes(), |path| files.contains(&path));
        let (path, query) = sent.split_once('?').unwrap_or((sent, ""));
        let request = RequestPath::parse(path).unwrap();
        let resolver = Resolver { redirects: &redirects, spa };
        let asked: BTreeSet<String> = resolver.files(&request, query).into_iter().collect();
        let exists = |path: &str| {
            assert!(asked.contains(path), "{path} was not looked up for {sent}");
            files.contains(&path)
        };
        match resolver.resolve(&request, query, exists, page) {
            Resolution::File { path, status } => format!("{status} {path}"),
            Resolution::Redirect { location, status } => format!("{status} {location}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn secrets_that_an_earlier_version_stored_are_not_served() {
        let (redirects, _) = Redirects::parse(b"/secret /.env 200\n", |_| false);
        let resolver = Resolver { redirects: &redirects, spa: false };
        let stored = |path: &str| [".env", ".env.html", "a/.git/config"].contains(&path);
        for path in ["/.env", "/a/.git/config", "/secret", "/.env.html"] {
            let request = RequestPath::parse(path).unwrap();
            assert_eq!(resolver.resolve(&request, "", stored, None), Resolution::NotFound, "{path}");
        }
    }

    #[test]
    fn each_step_precedes_the_next() {
        let all = ["x.html", "200.html", "index.html", "a/404.html", "404.html"];
        let without = |left_out: &[&str]| -> Vec<&'static str> {
            all.into_iter().filter(|file| !left_out.contains(file)).collect()
        };
        let made = Some(PageAt::Made);
        let rules = "/x /forced 302!\n/* /rule 302";
        for (rules, spa, files, page, sent, expected) in [
            ("/* /x 302!", true, without(&[]), made, "/_wr/x", "Reserved"),
            (rules, true, without(&[]), made, "/x", "302 /forced"),
            ("/* /rule 302", true, without(&[]), made, "/x", "200 x.html"),
            ("/* /rule 302", true, without(&["x.html", "200.html"]), made, "/x", "Page"),
            ("/x /rule 302", true, without(&["x.html"]), None, "/x", "302 /rule"),
            ("", true, without(&["x.html"]), None, "/x", "200 200.html"),
            ("", true, without(&["x.html", "200.html"]), None, "/x", "200 index.html"),
            ("", false, without(&["200.html"]), None, "/a/y", "404 a/404.html"),
            ("", false, without(&["200.html"]), None, "/b/y", "404 404.html"),
            ("", false, vec!["x.html"], None, "/b/y", "NotFound"),
        ] {
            assert_eq!(resolved(rules, spa, &files, page, sent), expected, "{rules} {files:?} {sent}");
        }
    }

    #[test]
    fn a_slug_leads_to_its_file() {
        let page = Some(PageAt::Deployed("Über uns.html"));
        let files = ["Über uns.html", "200.html"];
        assert_eq!(resolved("", true, &files, page, "/ber-uns"), "308 /%C3%9Cber%20uns.html");
        assert_eq!(resolved("", true, &files, page, "/ber-uns?a=b"), "308 /%C3%9Cber%20uns.html?a=b");
        let page = Some(PageAt::Deployed("about.html"));
        assert_eq!(resolved("", false, &["about.html"], page, "/about"), "200 about.html");
    }

    #[test]
    fn a_page_of_the_api_redirects_to_its_address() {
        let page = Some(PageAt::MadeAt("about"));
        assert_eq!(resolved("/* /x 302", true, &["index.html"], page, "/about.html?a"), "308 /about?a");
        assert_eq!(resolved("", false, &["about.html"], page, "/about.html"), "200 about.html");
        assert_eq!(resolved("", false, &[], Some(PageAt::MadeAt("index")), "/index"), "308 /");
    }

    #[test]
    fn rewrites_answer_with_files_of_the_site() {
        let files = ["app/index.html", "en/404.html", "404.html"];
        let rules = "/app/* /app/ 200\n/en/* /en/404.html 404\n/gone/* /missing 200\n/out/* /../x 200";
        for (sent, expected) in [
            ("/app/a/b", "200 app/index.html"),
            ("/app", "308 /app/"),
            ("/en/x", "404 en/404.html"),
            ("/gone/x", "404 404.html"),
            ("/out/x", "404 404.html"),
        ] {
            assert_eq!(resolved(rules, false, &files, None, sent), expected, "{sent}");
        }
    }

    #[test]
    fn a_redirect_keeps_the_query_and_the_host() {
        let files = ["evil.example/index.html"];
        assert_eq!(resolved("", false, &files, None, "//evil.example?a=b"), "308 /evil.example/?a=b");
        let injected = resolved("", false, &["x/index.html"], None, "/x?a\r\nSet-Cookie: b");
        assert_eq!(injected, "308 /x/?a%0D%0ASet-Cookie:%20b");
    }

    /// The order without rules, as the documentation says it, over the texts of addresses.
    fn described(files: &BTreeSet<String>, spa: bool, page: Option<PageAt<'_>>, sent: &str) -> String {
        let has = |path: &str| files.contains(path);
        let (bare, is_folder) = (sent.trim_matches('/'), sent.ends_with('/'));
        let index = format!("/{bare}/index.html").replace("//", "/")[1..].to_owned();
        let direct =
            [bare.to_owned(), format!("{bare}.html")].into_iter().find(|path| !bare.is_empty() && has(path));
        match (direct, has(&index), is_folder) {
            (Some(path), _, false) => return format!("200 {path}"),
            (_, true, true) => return format!("200 {index}"),
            (Some(_), false, true) => return format!("308 /{bare}"),
            (None, true, false) => return format!("308 /{bare}/"),
            (None, false, _) => {}
        }
        match page {
            Some(PageAt::Deployed(path)) => return format!("308 /{path}"),
            Some(PageAt::Made) => return "Page".to_owned(),
            Some(PageAt::MadeAt(slug)) => return format!("308 /{slug}"),
            None => {}
        }
        if has("200.html") {
            return "200 200.html".to_owned();
        }
        if spa && has("index.html") {
            return "200 index.html".to_owned();
        }
        let folder = if is_folder { sent } else { &sent[..=sent.rfind('/').unwrap_or(0)] };
        let ends = folder.match_indices('/').map(|(at, _)| at).collect::<Vec<_>>();
        let pages = ends.iter().rev().map(|end| format!("{}404.html", &folder[1..(end + 1).max(1)]));
        pages.into_iter().find(|path| has(path)).map_or("NotFound".to_owned(), |path| format!("404 {path}"))
    }

    proptest! {
        #[test]
        fn every_request_resolves_as_described(
            files in prop::collection::btree_set("(a|b|404|200|index)(/(a|b|404|index)){0,2}(\\.html)?", 0..10),
            spa: bool,
            page in prop::option::of(prop_oneof![
                Just(PageAt::Made), Just(PageAt::MadeAt("bb")), Just(PageAt::Deployed("B.html"))
            ]),
            sent in "(/(a|b|c)(\\.html)?){1,3}/?|/",
        ) {
            let names: Vec<&str> = files.iter().map(String::as_str).collect();
            let answered = resolved("", spa, &names, page, &sent);
            prop_assert_eq!(answered, described(&files, spa, page, &sent), "{:?} {}", files, sent);
        }

        #[test]
        fn only_files_that_were_looked_up_decide(
            files in prop::collection::btree_set("(a|b|404|200|index)(/(a|b|404|index)){0,2}(\\.html)?", 0..8),
            rules in "((/a|/b|/\\*|/:x/b) (/a|/b/:splat|/index\\.html) (200|200!|302|404)\n){0,3}",
            spa: bool,
            sent in "(/(a|b|c)(\\.html)?){0,3}/?",
        ) {
            let names: Vec<&str> = files.iter().map(String::as_str).collect();
            let answered = resolved(&rules, spa, &names, None, &format!("/{sent}"));
            if let Some((status, path)) = answered.split_once(' ') && !path.starts_with('/') {
                prop_assert!(files.contains(path) && matches!(status, "200" | "404"), "{}", answered);
            }
        }
    }
}
