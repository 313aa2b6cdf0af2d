//! Resolves references between the files of a deployed site.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::paths;
use crate::pages;

/// Characters escaped in a path inside HTML or CSS.
const IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'\'')
    .add(b'(')
    .add(b')')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'`');

/// Maximum number of leading folders to strip: a path may have hundreds of thousands.
const BUILT_FOR_MAX: usize = 8;

/// Maximum length of a path that a reference leads to, in bytes. No path in a zip is longer, and each reference to a
/// longer one would be written out at that length.
const JOINED_BYTES_MAX: usize = 1_024;

/// Where a file of the zip is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The page with that slug.
    Page(String),
    /// A file at its path; images and fonts also have a URL by content.
    File(Option<String>),
}

/// All files of a site, by path.
#[derive(Debug, Clone, Default)]
pub struct Links(BTreeMap<String, Target>);

/// How a reference is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Shown or loaded from any origin: an image, a font.
    Embedded,
    /// Loaded, and required to be same-origin: a script, a frame, a symbol.
    OwnOrigin,
    /// A link that visitors follow.
    Followed,
}

/// The result for a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Linked {
    /// Unchanged: it refers to another site, or to nothing.
    Unchanged,
    /// Replaced by this text.
    Replaced(String),
    /// No such file: replaced by the first text, and the second is the missing path to report.
    Missing(String, String),
}

impl Links {
    /// Creates the links between these files.
    pub fn new(targets: BTreeMap<String, Target>) -> Self {
        Self(targets)
    }

    /// Returns the base folder of a document's references: its own, or that of its `<base>`; `None` if that is on
    /// another site, or longer than any path in a zip.
    pub fn base(document: &str, base_href: Option<&str>) -> Option<String> {
        let own = document[..document.len() - paths::name_of(document).len()].to_owned();
        let Some(href) = base_href.map(str::trim) else { return Some(own) };
        if leads_elsewhere(href) {
            return None;
        }
        let (path, _) = split(href);
        let joined = join(&own, path)?;
        let folder =
            if path.ends_with('/') || joined.is_empty() { joined } else { parent(&joined).to_owned() };
        Some(if folder.is_empty() || folder.ends_with('/') { folder } else { format!("{folder}/") })
    }

    /// Resolves a reference relative to the folder `base`. A path longer than any in a zip stays as it is.
    pub fn link(&self, base: &str, reference: &str, used: Use) -> Linked {
        let reference = reference.trim();
        if reference.is_empty() || reference.starts_with(['#', '?']) || leads_elsewhere(reference) {
            return Linked::Unchanged;
        }
        let (path, rest) = split(reference);
        let decoded = percent_decode_str(path).decode_utf8_lossy();
        let Some(joined) = join(base, &decoded) else { return Linked::Unchanged };
        if let Some((found, target)) = self.find(&joined, decoded.starts_with('/')) {
            return Linked::Replaced(written(found, target, rest, used));
        }
        let absolute = format!("/{}{rest}", escaped(&joined));
        let is_perhaps_a_page = !paths::name_of(&joined).contains('.') || paths::is_page(&joined);
        if used == Use::Followed && is_perhaps_a_page {
            return Linked::Replaced(page_like(&joined).map_or(absolute, |path| format!("{path}{rest}")));
        }
        Linked::Missing(absolute, joined)
    }

    /// Finds the file at a path. A site built for a subfolder has that folder in absolute paths, but not in the zip.
    fn find(&self, path: &str, is_absolute: bool) -> Option<(&str, &Target)> {
        let mut path = path;
        for _ in 0..BUILT_FOR_MAX {
            let found = self.served(path);
            if found.is_some() || !is_absolute {
                return found;
            }
            (_, path) = path.split_once('/')?;
        }
        self.served(path)
    }

    /// Finds the file that a static web server would send for a path.
    fn served(&self, path: &str) -> Option<(&str, &Target)> {
        let at = |path: &str| self.0.get_key_value(path).map(|(path, target)| (path.as_str(), target));
        let folder = path.trim_end_matches('/');
        let index = if folder.is_empty() { "index.html".to_owned() } else { format!("{folder}/index.html") };
        let served = at(path).filter(|_| !path.is_empty()).or_else(|| at(&index));
        served.or_else(|| at(&format!("{folder}.html")).filter(|_| !folder.is_empty()))
    }
}

fn written(path: &str, target: &Target, rest: &str, used: Use) -> String {
    match target {
        Target::Page(slug) => format!("{}{rest}", pages::path_of(slug)),
        // A fragment of an SVG from another origin can't be used.
        Target::File(Some(address)) if used == Use::Embedded && !rest.contains('#') => {
            format!("{address}{rest}")
        }
        Target::File(_) => format!("/{}{rest}", escaped(path)),
    }
}

/// Returns the slug of a page outside the zip, which may exist on the site all the same.
fn page_like(path: &str) -> Option<String> {
    let path = path.trim_end_matches('/');
    let file = if paths::is_page(path) { path.to_owned() } else { format!("{path}.html") };
    let slug = if path.is_empty() { pages::INDEX.to_owned() } else { paths::slug_of(&file) };
    pages::check_slug(&slug).is_empty().then(|| pages::path_of(&slug))
}

fn escaped(path: &str) -> String {
    utf8_percent_encode(path, IN_PATH).to_string()
}

/// Splits a reference into its path, and its query and fragment.
fn split(reference: &str) -> (&str, &str) {
    reference.split_at(reference.find(['?', '#']).unwrap_or(reference.len()))
}

/// Returns whether a reference has a scheme or a host.
fn leads_elsewhere(reference: &str) -> bool {
    let scheme = reference.split_once(':').map(|(scheme, _)| scheme);
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    reference.starts_with("//") || scheme.is_some_and(is_scheme)
}

/// Joins `path` to `base` and resolves `.` and `..`; like in browsers, `..` above the root has no effect. Returns `None`
/// if the path exceeds [`JOINED_BYTES_MAX`] on the way.
fn join(base: &str, path: &str) -> Option<String> {
    let from = if path.starts_with('/') { "" } else { base };
    let mut joined = String::new();
    for part in from.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => joined.truncate(joined.rfind('/').unwrap_or_default()),
            part if joined.len() + part.len() + 1 > JOINED_BYTES_MAX => return None,
            part => {
                if !joined.is_empty() {
                    joined.push('/');
                }
                joined.push_str(part);
            }
        }
    }
    let is_folder =
        path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..") || path == "." || path == "..";
    if is_folder && !joined.is_empty() {
        joined.push('/');
    }
    Some(joined)
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links() -> Links {
        let page = |slug: &str| Target::Page(slug.to_owned());
        let targets = [
            ("index.html", page("index")),
            ("a/index.html", page("a")),
            ("Docs/Über uns.html", page("docs/ber-uns")),
            ("b.html", page("bb")),
            ("a/logo.png", Target::File(Some("https://assets.test/ab/logo.png".to_owned()))),
            ("icons.svg", Target::File(Some("https://assets.test/cd/icons.svg".to_owned()))),
            ("js/app.js", Target::File(None)),
            ("css/a b(1).css", Target::File(None)),
            ("files/x.pdf", Target::File(None)),
        ];
        Links::new(targets.into_iter().map(|(path, target)| (path.to_owned(), target)).collect())
    }

    fn to(base: &str, reference: &str, used: Use) -> String {
        match links().link(base, reference, used) {
            Linked::Replaced(to) => to,
            other => panic!("{reference}: {other:?}"),
        }
    }

    #[test]
    fn pages_are_linked_by_their_slugs() {
        for (base, reference, path) in [
            ("", "./b.html", "/bb"),
            ("a/", "../b.html#x", "/bb#x"),
            ("a/", "../b", "/bb"),
            ("", "a/", "/a"),
            ("", "a", "/a"),
            ("", "a/index.html?q=1#x", "/a?q=1#x"),
            ("a/", ".", "/a"),
            ("a/", "./", "/a"),
            ("a/", "..", "/"),
            ("a/", "../", "/"),
            ("a/", "/", "/"),
            ("a/", "/index.html", "/"),
            ("", "Docs/%C3%9Cber%20uns.html", "/docs/ber-uns"),
            ("", "../../b.html", "/bb"),
        ] {
            assert_eq!(to(base, reference, Use::Followed), path, "{reference} from {base}");
        }
    }

    #[test]
    fn images_are_linked_by_content_and_other_files_by_path() {
        assert_eq!(to("a/", "logo.png?v=2", Use::Embedded), "https://assets.test/ab/logo.png?v=2");
        assert_eq!(to("a/", "logo.png", Use::Followed), "/a/logo.png");
        assert_eq!(to("", "icons.svg#home", Use::Embedded), "/icons.svg#home");
        assert_eq!(to("", "icons.svg", Use::OwnOrigin), "/icons.svg");
        assert_eq!(to("a/", "../js/app.js", Use::OwnOrigin), "/js/app.js");
        assert_eq!(to("", "css/a%20b(1).css", Use::Embedded), "/css/a%20b%281%29.css");
    }

    #[test]
    fn references_to_other_sites_are_unchanged() {
        for reference in [
            "https://x.test/a.png",
            "//x.test/a.png",
            "data:image/png;base64,x",
            "mailto:a@b.co",
            "#top",
            "",
            " ",
            "?q=1",
            "javascript:void(0)",
            "blob:x",
            "tel:+1",
        ] {
            assert_eq!(links().link("", reference, Use::Embedded), Linked::Unchanged, "{reference}");
        }
    }

    #[test]
    fn a_missing_file_is_reported_unless_it_may_be_a_page() {
        let missing = |path: &str| Linked::Missing(format!("/{path}"), path.to_owned());
        assert_eq!(links().link("a/", "none.png", Use::Embedded), missing("a/none.png"));
        assert_eq!(links().link("", "/none.js", Use::OwnOrigin), missing("none.js"));
        assert_eq!(links().link("", "files/none.pdf", Use::Followed), missing("files/none.pdf"));
        assert_eq!(to("a/", "Other.html#x", Use::Followed), "/a/other#x");
        assert_eq!(to("a/", "other/", Use::Followed), "/a/other");
    }

    #[test]
    fn a_subfolder_the_site_was_built_for_may_be_absent() {
        assert_eq!(to("a/", "/theme/v2/js/app.js", Use::OwnOrigin), "/js/app.js");
        assert_eq!(to("a/", "/theme/b.html", Use::Followed), "/bb");
        assert!(matches!(links().link("", "theme/js/app.js", Use::OwnOrigin), Linked::Missing(..)));
    }

    #[test]
    fn a_path_longer_than_any_in_a_zip_is_unchanged() {
        let of = |bytes: usize| format!("/{}", "a/".repeat(bytes / 2));
        assert!(matches!(links().link("", &of(1_022), Use::OwnOrigin), Linked::Missing(..)));
        for endless in [of(1_026), of(500_000), format!("/{}", "a".repeat(1_025))] {
            assert_eq!(links().link("", &endless, Use::OwnOrigin), Linked::Unchanged);
            assert_eq!(Links::base("index.html", Some(&endless)), None, "its references stay as they are");
        }
        let base = "b".repeat(1_000) + "/";
        assert_eq!(links().link(&base, &"a".repeat(24), Use::Embedded), Linked::Unchanged);
        assert!(matches!(links().link(&base, "/none.png", Use::Embedded), Linked::Missing(..)));
    }

    #[test]
    fn references_are_relative_to_the_base() {
        for (document, href, base) in [
            ("a/b.html", None, Some("a/")),
            ("b.html", None, Some("")),
            ("b.html", Some("a/"), Some("a/")),
            ("a/b.html", Some("../c/d.html"), Some("c/")),
            ("a/b.html", Some("/"), Some("")),
            ("a/b.html", Some("https://x.test/"), None),
        ] {
            assert_eq!(Links::base(document, href).as_deref(), base, "{document} {href:?}");
        }
    }
}
