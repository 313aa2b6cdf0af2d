//! Validation of the data that a sign-in returns with.

/// Purpose of the encryption of the state of a sign-in under way.
pub const STATE_PURPOSE: &str = "sign_in";
/// The default page after signing in and after claiming a trial: the console.
pub const HOME: &str = "/console";
/// Maximum length of a return path, in characters.
const MOST_CHARS: usize = 512;
/// Maximum length of a subject, in bytes (OpenID Connect Core 1.0, 2).
const SUBJECT_MOST_BYTES: usize = 255;

/// Pages of trials to claim, which a sign-in may also return to.
const CLAIM: &str = "/claim/";
/// The page of one's accounts, which a sign-in may also return to.
const ACCOUNT: &str = "/account";

/// Returns the path to open after signing in: the requested one if it is a page of the console, the page of accounts or a
/// claim's page, else [`HOME`].
///
/// The claim's token may have no slash and no dot, because browsers resolve `..` and treat `//host` and `/\host` as
/// another host; and they strip tabs and line breaks before parsing.
pub fn return_path(asked: Option<&str>) -> &str {
    let is_allowed = |path: &&str| {
        let end = path.find(['?', '#']).unwrap_or(path.len());
        let page = &path[..end];
        let is_page =
            page == ACCOUNT || page.strip_prefix(CLAIM).is_some_and(is_claim_token) || is_console(page);
        is_page && path.len() <= MOST_CHARS && path.chars().all(|c| c.is_ascii_graphic() && c != '\\')
    };
    asked.filter(is_allowed).unwrap_or(HOME)
}

/// Returns whether a return path is the page of a trial to claim.
pub fn is_claim(return_path: &str) -> bool {
    return_path.starts_with(CLAIM)
}

/// Returns whether a path is a page of the console. A segment has no dot, because browsers resolve `..`.
fn is_console(path: &str) -> bool {
    path.strip_prefix(HOME).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with('/') && rest.split('/').skip(1).all(is_claim_token)
    })
}

fn is_claim_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
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
    fn returns_only_to_the_console_to_the_account_and_to_claims() {
        for ours in [
            "/account",
            "/account?from=mail",
            "/claim/abc",
            "/claim/a-B_9?b=c#d",
            "/console",
            "/console/forms/0-1/submissions/2?a=b",
        ] {
            assert_eq!(return_path(Some(ours)), ours);
        }
        let long = format!("/claim/{}", "a".repeat(MOST_CHARS));
        for other in [
            "/",
            "/consoles",
            "/console/",
            "/console//evil.test",
            "/console/../login",
            "/console/%2e%2e/login",
            "/p/phishing",
            "/logout",
            "/account/switch",
            "/accounts",
            "/claim/",
            "/claim/../p/phishing",
            "/claim/..%2fp",
            "/claim/%2e%2e/p/phishing",
            "/claim//evil.test",
            "/claim/a/../../p/x",
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
    fn only_the_page_of_a_trial_is_a_claim() {
        assert!(is_claim("/claim/abc") && is_claim("/claim/a?b=c"));
        assert!(!is_claim(HOME) && !is_claim("/account?to=/claim/abc"));
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
