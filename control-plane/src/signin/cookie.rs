//! The two cookies: the session token, and the token that ties a sign-in to the browser that started it.

use chrono::TimeDelta;
use domain::addresses::Addresses;
use http::{HeaderMap, HeaderValue, header};

use super::token;

/// Names and attributes of the cookies of this installation.
#[derive(Debug, Clone, Copy)]
pub struct Cookies {
    secure: bool,
}

/// The cookies of sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cookie {
    /// The session token.
    Session,
    /// The token of the browser that starts a sign-in.
    Browser,
}

impl Cookies {
    /// Uses `__Host-` cookies, which no other host of the domain can set. Browsers accept them over https only, so plain
    /// http on localhost uses unprefixed names.
    pub(crate) fn new(addresses: &Addresses) -> Self {
        Self { secure: !(addresses.is_local() && addresses.base().starts_with("http:")) }
    }

    pub fn name(self, cookie: Cookie) -> &'static str {
        match (cookie, self.secure) {
            (Cookie::Session, true) => "__Host-session",
            (Cookie::Session, false) => "session",
            (Cookie::Browser, true) => "__Host-signin",
            (Cookie::Browser, false) => "signin",
        }
    }

    /// Returns the token of the cookie, or `None` if it is absent or malformed.
    pub fn read(self, cookie: Cookie, headers: &HeaderMap) -> Option<&str> {
        let pairs = headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = pairs.into_iter().find(|(name, _)| *name == self.name(cookie))?;
        (value.len() == token::DIGITS && value.bytes().all(|byte| byte.is_ascii_alphanumeric()))
            .then_some(value)
    }

    /// Returns the `Set-Cookie` header that stores the token for `max_age`.
    pub(super) fn set(self, cookie: Cookie, token: &str, max_age: TimeDelta) -> HeaderValue {
        self.header(cookie, token, max_age.num_seconds())
    }

    /// Returns the `Set-Cookie` header that deletes the cookie.
    pub(super) fn clear(self, cookie: Cookie) -> HeaderValue {
        self.header(cookie, "", 0)
    }

    fn header(self, cookie: Cookie, token: &str, seconds: i64) -> HeaderValue {
        let secure = if self.secure { "; Secure" } else { "" };
        let text = format!(
            "{}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}",
            self.name(cookie)
        );
        // The text consists of names, digits and punctuation chosen here, so it is always a valid header value.
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookies(base_url: &str) -> Cookies {
        Cookies::new(&Addresses::new(base_url, "sites.test").unwrap())
    }

    #[test]
    fn a_cookie_is_bound_to_this_host_and_hidden_from_scripts() {
        let token = "a".repeat(token::DIGITS);
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
            "only localhost is local"
        );
    }

    #[test]
    fn finds_the_token_among_other_cookies_and_rejects_malformed_ones() {
        let token = "b".repeat(token::DIGITS);
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
