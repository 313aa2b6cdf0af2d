//! Validation of the data that a sign-in returns with.

/// The default page after signing in.
pub const HOME: &str = "/account";
/// Maximum length of a return path, in characters.
const MOST_CHARS: usize = 512;
/// Maximum length of a subject, in bytes (OpenID Connect Core 1.0, 2).
const SUBJECT_MOST_BYTES: usize = 255;

/// Returns the path to open after signing in: the requested one if it is a path of this host, else [`HOME`].
///
/// Browsers treat `//host` and `/\host` as another host, and strip tabs and line breaks before parsing.
pub fn return_path(asked: Option<&str>) -> &str {
    let is_ours = |path: &&str| {
        path.len() <= MOST_CHARS
            && path.starts_with('/')
            && !path.starts_with("//")
            && path.chars().all(|c| c.is_ascii_graphic() && c != '\\')
    };
    asked.filter(is_ours).unwrap_or(HOME)
}

/// Returns whether a provider's subject is valid.
pub fn is_subject(subject: &str) -> bool {
    (1..=SUBJECT_MOST_BYTES).contains(&subject.len()) && !subject.chars().any(char::is_control)
}

/// Sanitizes a name or an e-mail address from a provider for storage and display; `None` if nothing remains.
pub fn shown(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !c.is_control()).take(SUBJECT_MOST_BYTES).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_redirects_to_another_host() {
        for ours in ["/account", "/claim/abc", "/claim/a?b=c#d", "/"] {
            assert_eq!(return_path(Some(ours)), ours);
        }
        let long = format!("/{}", "a".repeat(MOST_CHARS));
        for other in [
            "https://evil.test",
            "//evil.test",
            "///evil.test",
            "/\\evil.test",
            "\\\\evil.test",
            "/\t/evil.test",
            "/\n/evil.test",
            " /account",
            "/a b",
            "javascript:alert(1)",
            "account",
            "",
            "/gö",
            &long,
        ] {
            assert_eq!(return_path(Some(other)), HOME, "{other:?}");
        }
        assert_eq!(return_path(None), HOME);
    }

    #[test]
    fn a_subject_is_short_and_without_control_characters() {
        assert!(is_subject("1234") && is_subject(&"s".repeat(255)));
        assert!(!is_subject("") && !is_subject(&"s".repeat(256)) && !is_subject("a\0b"));
    }

    #[test]
    fn a_name_is_stripped_of_invisible_characters() {
        assert_eq!(shown(" Ada\0 Lovelace\n").as_deref(), Some("Ada Lovelace"));
        assert_eq!(shown("\u{0}\n "), None);
        assert_eq!(shown(&"ü".repeat(300)).unwrap().chars().count(), 255);
    }
}
