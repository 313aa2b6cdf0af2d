//! `X-Robots-Tag`: a site may restrict search engines further, and never less than the platform does.

/// Directives that restrict, as far as they can stand beside the platform's own.
const RESTRICTIONS: [&str; 7] =
    ["noindex", "nofollow", "none", "noarchive", "nosnippet", "noimageindex", "notranslate"];

/// Returns the header for a site's value and the platform's own. Where the platform has one, it comes first, and of the
/// site's value only restrictions of all robots remain: a directive for one robot (`googlebot: all`) or a permission
/// (`all`, `index`) could weaken it.
pub fn stricter_robots(value: &str, own: Option<&str>) -> String {
    let Some(own) = own else { return value.to_owned() };
    let mut directives: Vec<&str> = own.split(',').map(str::trim).collect();
    for directive in value.split(',').map(str::trim) {
        let is_new = !directives.iter().any(|known| known.eq_ignore_ascii_case(directive));
        let restricts = RESTRICTIONS.iter().any(|known| known.eq_ignore_ascii_case(directive));
        if is_new && restricts {
            directives.push(directive);
        }
    }
    directives.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_can_not_make_its_preview_indexable() {
        for (value, own, expected) in [
            ("all", Some("noindex"), "noindex"),
            ("index, follow", Some("noindex"), "noindex"),
            ("googlebot: all", Some("noindex"), "noindex"),
            ("googlebot: index, NOARCHIVE", Some("noindex"), "noindex, NOARCHIVE"),
            ("NoIndex, nofollow", Some("noindex"), "noindex, nofollow"),
            ("max-snippet: -1", Some("noindex"), "noindex"),
            ("unavailable_after: 2030-01-01", Some("noindex, nofollow"), "noindex, nofollow"),
            ("", Some("noindex"), "noindex"),
            ("all", None, "all"),
            ("googlebot: noindex, nofollow", None, "googlebot: noindex, nofollow"),
        ] {
            assert_eq!(stricter_robots(value, own), expected, "{value} {own:?}");
        }
    }
}
