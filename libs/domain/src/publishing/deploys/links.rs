//! Resolves references between the files of a deployed site.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha384};

use crate::static_sites::address;
use crate::static_sites::page_slugs::is_html;
use crate::static_sites::site_path::{
    self, PATH_BYTES_MAX, RequestPath, address_of, folder_address, name_of,
};

/// How a file of the site is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// At its path, with the bytes of the zip.
    AtPath,
    /// At its path, with other bytes: a style sheet with rewritten references, and the integrity metadata of those bytes
    /// (W3C Subresource Integrity, 3.1).
    Rewritten { integrity: String },
    /// At its path, and at this URL by content: an image or a font.
    ByContent(String),
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
    /// Unchanged.
    Unchanged,
    /// Replaced by this URL by content.
    Replaced(String),
    /// Unchanged, and this path that it leads to does not exist.
    Missing(String),
}

impl Links {
    /// Creates the links between these files.
    pub fn new(targets: BTreeMap<String, Target>) -> Self {
        Self(targets)
    }

    /// Records that a style sheet is served with rewritten references, as `css`.
    pub fn set_rewritten(&mut self, path: &str, css: &str) {
        if let Some(target) = self.0.get_mut(path) {
            let integrity = format!("sha384-{}", STANDARD.encode(Sha384::digest(css)));
            *target = Target::Rewritten { integrity };
        }
    }

    /// Returns the base folder of a document's references: its own, or that of its `<base>`; `None` if that is on
    /// another site, or longer than any path in a zip.
    pub fn base(document: &str, base_href: Option<&str>) -> Option<String> {
        let own = document[..document.len() - name_of(document).len()].to_owned();
        let Some(href) = base_href.map(str::trim) else { return Some(own) };
        if leads_elsewhere(href) {
            return None;
        }
        let (path, _) = split(href);
        let joined = join(&own, path)?;
        let folder = if path.ends_with('/') || joined.is_empty() {
            joined
        } else {
            site_path::folder_of(&joined).to_owned()
        };
        Some(if folder.is_empty() || folder.ends_with('/') { folder } else { format!("{folder}/") })
    }

    /// Resolves a reference relative to the folder `base`. A reference to another site, or to a path longer than any in
    /// a zip, is unchanged.
    pub fn link(&self, base: &str, reference: &str, used: Use) -> Linked {
        let reference = reference.trim();
        let Some(joined) = joined(base, reference) else { return Linked::Unchanged };
        let (_, rest) = split(reference);
        match self.find(&joined) {
            // A fragment of an SVG from another origin can't be used.
            Some(Target::ByContent(address)) if used == Use::Embedded && !rest.contains('#') => {
                return Linked::Replaced(format!("{address}{rest}"));
            }
            Some(_) => return Linked::Unchanged,
            None => {}
        }
        // The API may have made a page there.
        let is_perhaps_a_page =
            used == Use::Followed && (!name_of(&joined).contains('.') || is_html(&joined));
        if is_perhaps_a_page || self.answers(&joined) { Linked::Unchanged } else { Linked::Missing(joined) }
    }

    /// Returns the integrity metadata of the style sheet that a reference leads to, if it is served with other bytes than
    /// those of the zip.
    pub fn new_integrity(&self, base: &str, reference: &str) -> Option<&str> {
        match self.find(&joined(base, reference.trim())?)? {
            Target::Rewritten { integrity } => Some(integrity),
            Target::AtPath | Target::ByContent(_) => None,
        }
    }

    /// Finds the file at exactly this path.
    fn find(&self, joined: &str) -> Option<&Target> {
        self.0.get(joined).or_else(|| {
            // The names of a zip are in another form than this one, or have other bytes.
            let path = site_path::of_entry(joined.as_bytes()).ok()?;
            self.0.get(&path).filter(|_| !joined.ends_with('/'))
        })
    }

    /// Returns whether the site answers at this path.
    fn answers(&self, joined: &str) -> bool {
        let path = site_path::of_entry(joined.as_bytes()).unwrap_or_default();
        let is_folder = joined.ends_with('/') || joined.is_empty();
        let address = if is_folder { folder_address(&path) } else { address_of(&path) };
        let candidates = RequestPath::parse(&address).map(|request| address::candidates(&request));
        site_path::is_reserved(&path)
            || candidates.unwrap_or_default().iter().any(|file| self.0.contains_key(file))
    }
}

/// Returns the decoded path that a reference leads to; `None` if that is not a path of this site.
fn joined(base: &str, reference: &str) -> Option<String> {
    if reference.is_empty() || reference.starts_with(['#', '?']) || leads_elsewhere(reference) {
        return None;
    }
    let (path, _) = split(reference);
    join(base, &percent_decode_str(path).decode_utf8_lossy())
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
/// if the path exceeds [`PATH_BYTES_MAX`] on the way: each reference to it would be reported at that length.
fn join(base: &str, path: &str) -> Option<String> {
    let from = if path.starts_with('/') { "" } else { base };
    let mut joined = String::new();
    for part in from.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => joined.truncate(joined.rfind('/').unwrap_or_default()),
            part if joined.len() + part.len() + 1 > PATH_BYTES_MAX => return None,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn links() -> Links {
        let image = |address: &str| Target::ByContent(format!("https://assets.test/{address}"));
        let targets = [
            ("index.html", Target::AtPath),
            ("a/index.html", Target::AtPath),
            ("Docs/Über uns.html", Target::AtPath),
            ("a/logo.png", image("ab/logo.png")),
            ("größe 1.png", image("ef/gr.png")),
            ("icons.svg", image("cd/icons.svg")),
            ("js/app.js", Target::AtPath),
            ("css/a b(1).css", Target::AtPath),
            ("files/x.pdf", Target::AtPath),
        ];
        Links::new(targets.into_iter().map(|(path, target)| (path.to_owned(), target)).collect())
    }

    fn link(base: &str, reference: &str, used: Use) -> Linked {
        links().link(base, reference, used)
    }

    #[test]
    fn only_images_and_fonts_are_replaced() {
        let to = |address: &str| Linked::Replaced(format!("https://assets.test/{address}"));
        for (base, reference, used, expected) in [
            ("a/", "logo.png?v=2", Use::Embedded, to("ab/logo.png?v=2")),
            ("a/", "./logo.png", Use::Embedded, to("ab/logo.png")),
            ("", "../../a/logo.png", Use::Embedded, to("ab/logo.png")),
            ("x/", "/gr%C3%B6%C3%9Fe%201.png", Use::Embedded, to("ef/gr.png")),
            ("", "gro%CC%88%C3%9Fe 1.png", Use::Embedded, to("ef/gr.png")),
            ("a/", "logo.png", Use::Followed, Linked::Unchanged),
            ("", "icons.svg#home", Use::Embedded, Linked::Unchanged),
            ("", "icons.svg", Use::OwnOrigin, Linked::Unchanged),
            ("a/", "../js/app.js", Use::OwnOrigin, Linked::Unchanged),
            ("", "css/a%20b(1).css", Use::Embedded, Linked::Unchanged),
        ] {
            assert_eq!(link(base, reference, used), expected, "{reference} from {base}");
        }
    }

    #[test]
    fn links_to_pages_are_unchanged() {
        for (base, reference) in [
            ("", "Docs/%C3%9Cber%20uns.html#x"),
            ("", "Docs/%C3%9Cber%20uns"),
            ("a/", "."),
            ("a/", ".."),
            ("a/", "/index.html?q=1"),
            ("", "a"),
            ("", "a/"),
        ] {
            for used in [Use::Followed, Use::OwnOrigin] {
                assert_eq!(link(base, reference, used), Linked::Unchanged, "{reference} from {base}");
            }
        }
        for made_by_the_api in ["Other.html#x", "other/", "/other"] {
            assert_eq!(link("a/", made_by_the_api, Use::Followed), Linked::Unchanged, "{made_by_the_api}");
        }
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
            assert_eq!(link("", reference, Use::Embedded), Linked::Unchanged, "{reference}");
        }
    }

    #[test]
    fn a_missing_file_is_reported_unless_it_may_be_a_page() {
        for (base, reference, used, path) in [
            ("a/", "none.png", Use::Embedded, "a/none.png"),
            ("", "/none.js", Use::OwnOrigin, "none.js"),
            ("", "/theme/js/app.js", Use::OwnOrigin, "theme/js/app.js"),
            ("", "files/none.pdf", Use::Followed, "files/none.pdf"),
            ("", "frame/", Use::OwnOrigin, "frame/"),
        ] {
            assert_eq!(
                link(base, reference, used),
                Linked::Missing(path.to_owned()),
                "{reference} from {base}"
            );
        }
        assert_eq!(link("", "a/logo.png/", Use::OwnOrigin), Linked::Unchanged, "a redirect to the file");
        assert_eq!(link("", "/_wr/script.js", Use::OwnOrigin), Linked::Unchanged, "the platform answers");
    }

    #[test]
    fn a_rewritten_style_sheet_has_new_integrity_metadata() {
        let mut links = links();
        links.set_rewritten("css/a b(1).css", "p{}");
        // `printf 'p{}' | openssl dgst -sha384 -binary | base64`
        let integrity = "sha384-l5tjHW8LADNSE1AyPUmwbkf/3UM+JeWJSCHSxsox6miUwcatnR+pEle0o/Ibe1pq";
        assert_eq!(links.new_integrity("a/", "../css/a%20b(1).css?v=1"), Some(integrity));
        for other in ["js/app.js", "https://x.test/a.css", "none.css"] {
            assert_eq!(links.new_integrity("", other), None, "{other}");
        }
    }

    #[test]
    fn a_path_longer_than_any_in_a_zip_is_unchanged() {
        let of = |bytes: usize| format!("/{}", "a/".repeat(bytes / 2));
        assert!(matches!(link("", &of(1_022), Use::OwnOrigin), Linked::Missing(..)));
        for endless in [of(1_026), of(500_000), format!("/{}", "a".repeat(1_025))] {
            assert_eq!(link("", &endless, Use::OwnOrigin), Linked::Unchanged);
            assert_eq!(Links::base("index.html", Some(&endless)), None, "its references stay as they are");
        }
        let base = "b".repeat(1_000) + "/";
        assert_eq!(link(&base, &"a".repeat(24), Use::Embedded), Linked::Unchanged);
        assert!(matches!(link(&base, "/none.png", Use::Embedded), Linked::Missing(..)));
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
