//! Names of files with a hash of their content. Such a file never changes under its name, so browsers keep it without
//! asking again.
//!
//! A wrong guess would keep an old file in browsers for a year, so a name counts only where chance and habit don't make
//! it: hexadecimal digits of a usual length with letters and digits (webpack, Vite 2–4, Gatsby, Hugo), eight characters
//! of base64url that read as no words or lie among such (Vite, Rollup, Astro, VitePress), eight of base32 in scripts and
//! styles (esbuild, Angular), and the folders that Next, SvelteKit and Astro reserve for such files. HTML is never one.

use std::collections::{BTreeMap, BTreeSet};

use super::site_path::{folder_of, name_of};

/// Folders in which every file is named by its content, at any depth.
const FOLDERS: [&str; 2] = ["_next/static/", "_app/immutable/"];
/// Astro's folder, for files with a hash after a dot.
const ASTRO_FOLDER: &str = "_astro/";
/// Extensions of files that builds name by content.
const EXTENSIONS: [&str; 28] = [
    "js", "mjs", "css", "wasm", "json", "map", "png", "jpg", "jpeg", "gif", "webp", "avif", "svg", "ico",
    "woff", "woff2", "ttf", "otf", "eot", "mp3", "mp4", "m4a", "webm", "ogg", "wav", "bin", "glb", "data",
];
/// Lengths of hexadecimal hashes that bundlers write.
const HEX_LENGTHS: [usize; 7] = [8, 12, 16, 20, 32, 40, 64];
/// Length of hashes in base64url and base32.
const SHORT: usize = 8;
/// Number of sure names of the same form in a folder that make a probable one sure.
const SURE_SIBLINGS: usize = 2;

/// How sure a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    /// Not a hash.
    None,
    /// Reads as words, which a hash may do by chance: sure only in a folder where all names end like one.
    Possible(Form),
    /// Perhaps a hash: sure only beside sure ones of the same form.
    Probable(Form),
    /// A hash.
    Sure(Form),
}

/// Where the hash stands in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// `name-hash.js`.
    Dash,
    /// `name.hash.js`.
    Dot,
    /// By its folder.
    Folder,
}

/// Returns the paths with a content hash among all files of a site. A name that is only probable alone (a hash of
/// base64url may lack digits) counts beside at least two sure ones of the same form in its folder. One that reads as words
/// counts there too, if the folder has no file that builds could have named by its content and did not.
pub fn content_hashed<'a>(paths: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let found: Vec<(&str, Evidence)> = paths.into_iter().map(|path| (path, evidence(path))).collect();
    let mut sure: BTreeMap<(&str, Form), usize> = BTreeMap::new();
    let mut mixed: BTreeSet<&str> = BTreeSet::new();
    for (path, evidence) in &found {
        match evidence {
            Evidence::Sure(form) => *sure.entry((folder_of(path), *form)).or_default() += 1,
            Evidence::None if has_known_extension(path) => _ = mixed.insert(folder_of(path)),
            _ => {}
        }
    }
    let is_beside_sure =
        |path: &str, form: Form| sure.get(&(folder_of(path), form)).is_some_and(|n| *n >= SURE_SIBLINGS);
    let is_hashed = |path: &str, evidence: Evidence| match evidence {
        Evidence::None => false,
        Evidence::Sure(_) => true,
        Evidence::Probable(form) => is_beside_sure(path, form),
        Evidence::Possible(form) => is_beside_sure(path, form) && !mixed.contains(folder_of(path)),
    };
    found.into_iter().filter(|(path, evidence)| is_hashed(path, *evidence)).map(|(path, _)| path).collect()
}

fn has_known_extension(path: &str) -> bool {
    let lower = name_of(path).to_ascii_lowercase();
    lower.rsplit_once('.').is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
}

fn evidence(path: &str) -> Evidence {
    let lower = path.to_ascii_lowercase();
    let Some((_, extension)) = name_of(&lower).rsplit_once('.') else { return Evidence::None };
    if !EXTENSIONS.contains(&extension) {
        return Evidence::None;
    }
    if FOLDERS.iter().any(|folder| lies_in(path, folder)) || is_of_astro(path) {
        return Evidence::Sure(Form::Folder);
    }
    let is_code = matches!(extension, "js" | "mjs" | "css" | "map" | "wasm");
    let mut parts: Vec<&str> = name_of(path).split('.').collect();
    parts.pop();
    let is_whole_name = parts.len() == 1;
    let dots = parts.iter().enumerate().map(|(index, part)| {
        // The first part alone is a name, unless it is a long hash and nothing else.
        if index > 0 || (is_whole_name && is_hex(part) && part.len() >= 16) {
            token_evidence(part, Form::Dot, is_code)
        } else {
            Evidence::None
        }
    });
    let dashes = parts
        .iter()
        .flat_map(|part| dash_tokens(part))
        .map(|token| token_evidence(token, Form::Dash, is_code));
    dots.chain(dashes).max().unwrap_or(Evidence::None)
}

/// Returns whether a path contains a folder, given with a trailing slash.
fn lies_in(path: &str, folder: &str) -> bool {
    path.match_indices(folder).any(|(at, _)| at == 0 || path.as_bytes()[at - 1] == b'/')
}

/// Returns whether a file is one of Astro's: in its own folder, with eight characters of base64url after a dot. Images
/// have the hash of their conversion after that.
fn is_of_astro(path: &str) -> bool {
    let is_hash = |part: &str| {
        let short = part.as_bytes().get(..SHORT);
        short.is_some_and(|short| short.iter().all(|byte| is_base64url(*byte)))
            && matches!(part.as_bytes().get(SHORT), None | Some(b'_'))
    };
    let parts: Vec<&str> = name_of(path).split('.').collect();
    lies_in(path, ASTRO_FOLDER)
        && parts.len() > 2
        && parts[1..parts.len() - 1].iter().any(|part| is_hash(part))
}

/// Returns what stands after a `-` at the end of a part: after the last one, and the last eight characters, as a hash
/// of base64url may contain `-` itself.
fn dash_tokens(part: &str) -> impl Iterator<Item = &str> {
    let last = part.rsplit_once('-').map(|(_, token)| token);
    let at = part.len().checked_sub(SHORT + 1);
    let short = at.and_then(|at| part.get(at..)).and_then(|tail| tail.strip_prefix('-'));
    [last, short].into_iter().flatten()
}

fn token_evidence(token: &str, form: Form, is_code: bool) -> Evidence {
    if is_hex(token) && HEX_LENGTHS.contains(&token.len()) {
        return Evidence::Sure(form);
    }
    if token.len() != SHORT || !token.bytes().all(is_base64url) {
        return Evidence::None;
    }
    if is_base32(token) {
        return if is_code { Evidence::Sure(form) } else { Evidence::Probable(form) };
    }
    let has_upper = token.bytes().any(|byte| byte.is_ascii_uppercase());
    let has_lower = token.bytes().any(|byte| byte.is_ascii_lowercase());
    if !has_upper || !has_lower {
        return Evidence::None;
    }
    if is_of_words(token) {
        return Evidence::Possible(form);
    }
    if changes(token) >= 4 { Evidence::Sure(form) } else { Evidence::Probable(form) }
}

/// Returns whether a token is of hexadecimal digits in lower case, with letters and digits: a number or a word alone is
/// more often something else.
fn is_hex(token: &str) -> bool {
    token.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && token.bytes().any(|byte| byte.is_ascii_digit())
        && token.bytes().any(|byte| byte.is_ascii_lowercase())
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// Returns whether a token is of the characters of base32, in upper case.
fn is_base32(token: &str) -> bool {
    token.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7'))
}

/// Returns the number of changes between upper case, lower case, digits and other characters.
fn changes(token: &str) -> usize {
    let kind = |byte: &u8| match byte {
        b'A'..=b'Z' => 0,
        b'a'..=b'z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    token.as_bytes().windows(2).filter(|pair| kind(&pair[0]) != kind(&pair[1])).count()
}

/// Returns whether a token may be words in camel case, with numbers: every word has a vowel.
fn is_of_words(token: &str) -> bool {
    let mut words: Vec<String> = vec![String::new()];
    let mut previous = ' ';
    for c in token.chars() {
        let begins = c.is_ascii_uppercase() && !previous.is_ascii_uppercase();
        if (begins || !c.is_ascii_alphabetic()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_ascii_alphabetic()) {
            word.push(c.to_ascii_lowercase());
        }
        previous = c;
    }
    words.iter().filter(|word| !word.is_empty()).all(|word| word.contains(['a', 'e', 'i', 'o', 'u', 'y']))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a path by itself has a content hash for sure.
    fn is_content_hashed(path: &str) -> bool {
        content_hashed([path]).contains(path)
    }

    #[test]
    fn names_with_a_content_hash() {
        for path in [
            // Vite and Rollup.
            "assets/index-BkQ3x9aZ.js",
            "assets/index-BkQ3x9aZ.js.map",
            "assets/index-B-Q3x_aZ.css",
            "assets/my-view-DlAUq2Kx.js",
            "assets/index.4f9a2b1c.js",
            "assets/logo-4f9a2b1c.svg",
            "assets/inter-latin-Dx4kXJAl.woff2",
            // VitePress.
            "assets/chunks/framework.D7a9xK2b.js",
            "assets/guide_index.md.Bk3x9aZQ.lean.js",
            // webpack, Docusaurus, Gatsby.
            "main.3f2a1b4c.js",
            "static/js/main.3f2a1b4c.chunk.js",
            "main.3f2a1b4c5d6e7f80.chunk.js",
            "assets/js/1be78505.f0e32c16.js",
            "static/media/logo.6ce24c58023cc2f8fd88.svg",
            "images/6ce24c58023cc2f8fd88fe9d219db6c6.png",
            "app-6ce24c58023cc2f8fd88.js",
            // MkDocs Material, Hugo, mdBook.
            "assets/javascripts/bundle.88dd0f4e.min.js",
            "css/main.min.9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.css",
            "highlight-abc7f01d.js",
            // Next.
            "_next/static/chunks/webpack.js",
            "_next/static/x7Hq_buildId/_buildManifest.js",
            "docs/_next/static/css/app.css",
            // Astro.
            "_astro/x.BkQ3x9aZ.css",
            "_astro/_slug_.Df8X2aBc.css",
            "_astro/photo.Bk3x9aZQ_2bTq1X.webp",
            // SvelteKit.
            "_app/immutable/entry/start.js",
            "base/_app/immutable/nodes/0.css",
            // Angular.
            "main-ABCDEFGH.js",
            "polyfills-FFHMD2TL.js",
            "styles-5INURTSO.css",
            "chunk-ABC2DEFG.js",
        ] {
            assert!(is_content_hashed(path), "{path}");
        }
    }

    #[test]
    fn names_that_people_and_tools_choose() {
        for path in [
            "jquery-3.7.1.min.js",
            "bootstrap.bundle.min.js",
            "my-component.js",
            "index-wireframe.js",
            "index-Wireframe.js",
            "assets/view-HomePage.js",
            "assets/icon-MyButton.svg",
            "assets/Figure-Figure10.png",
            "assets/photo-iPhone15.jpg",
            "icon-MyAppBar.svg",
            "page-Web3Page.js",
            "report-20240131.pdf",
            "report-20240131.png",
            "backup.20240131.json",
            "2024-01-31.png",
            "photo-DSC00042.jpg",
            "logo-ORIGINAL.png",
            "image-deadbeef.png",
            "theme-facade.css",
            "data-1234567a.pdf",
            "index-4f9a2b1c.html",
            "index.BkQ3x9aZ.html",
            "BkQ3x9aZ.js",
            "3f2a1b4c.js",
            "dir_68267d1309a1af8e8297ef4c3efbcdba.js",
            "main.js",
            "sw.js",
            "_app/version.json",
            "next/static/x.js",
            "my_next/static/x.js",
            "_next/data/abc/index.json",
            "_astro/x.css",
            "_astro/x.page.css",
            "my_astro/x.homePage.css",
            "feed-3f2a1b4c.xml",
            "app-3f2a1b4c5d.js",
            "x.tar-3f2a1b4c",
            "font-Größe12.woff2",
            "",
        ] {
            assert!(!is_content_hashed(path), "{path}");
        }
    }

    #[test]
    fn siblings_make_a_probable_name_sure() {
        let sure = ["assets/a-BkQ3x9aZ.js", "assets/b-Xq7_kP2d.css"];
        let probable = "assets/c-BkqzxXad.js";
        assert!(!is_content_hashed(probable));
        assert_eq!(content_hashed([sure[0], probable]), BTreeSet::from([sure[0]]));
        let plain = "assets/view.js";
        let all = content_hashed([sure[0], sure[1], probable, plain, "other/c-BkqzxXad.js"]);
        assert_eq!(all, BTreeSet::from([sure[0], sure[1], probable]));
        // By chance it reads as words.
        let possible = "assets/theme-CefEzadY.js";
        let in_build = [sure[0], sure[1], possible, "assets/index.html"];
        assert!(content_hashed(in_build).contains(possible));
        assert!(!content_hashed([sure[0], sure[1], possible, plain]).contains(possible));
        assert!(!content_hashed([sure[0], possible]).contains(possible));
        // Another form, and an image of Angular beside no other.
        let angular = ["media/logo-ABCDEFGH.svg", "main-ABCDEFGH.js"];
        assert_eq!(content_hashed(angular), BTreeSet::from([angular[1]]));
    }
}
