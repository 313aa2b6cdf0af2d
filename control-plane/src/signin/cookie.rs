//! The two cookies: who is signed in, and which browser began to sign in.

use chrono::TimeDelta;
use domain::addresses::Addresses;
use http::{HeaderMap, HeaderValue, header};
use sha2::{Digest, Sha256};

/// Digits of a token: 256 bits.
pub(super) const TOKEN_DIGITS: usize = 43;

/// The cookies as this installation calls them.
#[derive(Debug, Clone, Copy)]
pub struct Cookies {
    secure: bool,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cookie {
    /// Who is signed in.
    Session,
    /// Which browser began to sign in.
    Browser,
}

impl Cookies {
    /// Browsers take `__Host-` cookies only over https, where no other host of the domain can set them. On a
    /// machine of one's own there is no https, and no other host.
    pub(crate) fn new(addresses: &Addresses) -> Self {
        Self { secure: !(addresses.is_local() && addresses.base().starts_with("http:")) }
    }

    /// The cookie's name here.
    pub fn name(self, cookie: Cookie) -> &'static str {
        match (cookie, self.secure) {
            (Cookie::Session, true) => "__Host-session",
            (Cookie::Session, false) => "session",
            (Cookie::Browser, true) => "__Host-signin",
            (Cookie::Browser, false) => "signin",
        }
    }

    /// The cookie's token in a request; none if it is absent or can't be one of ours.
    pub fn read(self, cookie: Cookie, headers: &HeaderMap) -> Option<&str> {
        let pairs = headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let (_, token) = pairs.into_iter().find(|(name, _)| *name == self.name(cookie))?;
        (token.len() == TOKEN_DIGITS && token.bytes().all(|byte| byte.is_ascii_alphanumeric()))
            .then_some(token)
    }

    /// The header that gives a browser the cookie, for as long as `lasts`.
    pub(super) fn set(self, cookie: Cookie, token: &str, lasts: TimeDelta) -> HeaderValue {
        self.header(cookie, token, lasts.num_seconds())
    }

    /// The header that takes the cookie away.
    pub(super) fn clear(self, cookie: Cookie) -> HeaderValue {
        self.header(cookie, "", 0)
    }

    fn header(self, cookie: Cookie, token: &str, seconds: i64) -> HeaderValue {
        let secure = if self.secure { "; Secure" } else { "" };
        let text = format!(
            "{}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}",
            self.name(cookie)
        );
        // Names, digits and punctuation of ours: always a header's value.
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
    }
}

/// What is stored instead of a token.
pub fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookies(base_url: &str) -> Cookies {
        Cookies::new(&Addresses::new(base_url, "sites.test").unwrap())
    }

    #[test]
    fn a_cookie_is_for_this_host_alone_and_no_script_reads_it() {
        let token = "a".repeat(TOKEN_DIGITS);
        let set = cookies("https://app.example.com").set(Cookie::Session, &token, TimeDelta::hours(1));
        assert_eq!(
            set.to_str().unwrap(),
            format!("__Host-session={token}; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure")
        );
        let local = cookies("http://localhost:8080");
        assert_eq!(local.clear(Cookie::Session), "session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
        assert_eq!(cookies("https://localhost").name(Cookie::Browser), "__Host-signin");
        assert_eq!(
            cookies("http://intranet").name(Cookie::Session),
            "__Host-session",
            "only localhost is one's own"
        );
    }

    #[test]
    fn a_token_is_found_among_other_cookies_and_nothing_else_is_taken_for_one() {
        let token = "b".repeat(TOKEN_DIGITS);
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, text.parse().unwrap());
            cookies("http://localhost").read(Cookie::Session, &headers).map(str::to_owned)
        };
        assert_eq!(read(&format!("a=1; session={token}; b=2")), Some(token.clone()));
        for wrong in [
            "session=",
            "session=short",
            "xsession=",
            &format!("Session={token}"),
            &format!("session={token}x"),
            &format!("session={}", "-".repeat(43)),
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
