//! The addresses of this installation: what is served where, and how it is written.

use url::Url;
use uuid::Uuid;

use crate::pages;

/// The base host and the domain all sites live under.
#[derive(Debug, Clone)]
pub struct Addresses {
    base_url: Url,
    sites_domain: String,
}

/// The base URL or the sites domain can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The base URL is no http(s) origin.
    #[error("base_url must be a http(s) address without path, like https://app.example.com: {0}")]
    BaseUrl(String),
    /// The sites domain shares the base URL's domain.
    #[error(
        "sites_domain {0} shares the base URL's domain: a site's page could then act as its visitor on the API"
    )]
    SharedDomain(String),
}

impl Addresses {
    /// Addresses under `base_url`, with sites under `sites_domain`.
    ///
    /// User HTML must never share cookies with the API, so the two may not lie under one another or under
    /// one parent; except on localhost, where a browser sends no site's cookies to another.
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn new(base_url: &str, sites_domain: &str) -> Result<Self, Unusable> {
        let wrong = || Unusable::BaseUrl(base_url.to_owned());
        let base_url = Url::parse(base_url).map_err(|_| wrong())?;
        let host = base_url.host_str().ok_or_else(wrong)?;
        if !matches!(base_url.scheme(), "http" | "https") || base_url.path() != "/" {
            return Err(wrong());
        }
        if !is_local(host) && parent(host) == parent(sites_domain) {
            return Err(Unusable::SharedDomain(sites_domain.to_owned()));
        }
        Ok(Self { base_url, sites_domain: sites_domain.to_ascii_lowercase() })
    }

    /// The base host's origin, without a slash at its end.
    pub fn base(&self) -> &str {
        self.base_url.as_str().trim_end_matches('/')
    }

    /// The base host's name, without port.
    pub fn base_host(&self) -> &str {
        self.base_url.host_str().unwrap_or_default()
    }

    /// Whether this installation runs on somebody's own machine.
    pub fn is_local(&self) -> bool {
        is_local(self.base_host())
    }

    /// The domain all sites live under.
    pub fn sites_domain(&self) -> &str {
        &self.sites_domain
    }

    /// A site's host name, without port.
    pub fn site_host(&self, subdomain: &str) -> String {
        format!("{subdomain}.{}", self.sites_domain)
    }

    /// A site's origin.
    pub fn site(&self, subdomain: &str) -> String {
        self.at(&self.site_host(subdomain))
    }

    /// The origin of any host we answer for.
    pub fn at(&self, host: &str) -> String {
        let port = self.base_url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{host}{port}", self.base_url.scheme())
    }

    /// A page on its site.
    pub fn page(&self, subdomain: &str, slug: &str) -> String {
        format!("{}{}", self.site(subdomain), pages::path_of(slug))
    }

    /// A page on the base host: bare if it holds the short address, else with its site named.
    pub fn short_page(&self, slug: &str, subdomain: &str, holds_short_address: bool) -> String {
        let site = if holds_short_address { String::new() } else { format!("?site={subdomain}") };
        format!("{}/p/{slug}{site}", self.base())
    }

    /// A form's hosted page.
    pub fn form(&self, id: Uuid) -> String {
        format!("{}/f/{id}", self.base())
    }

    /// Where a form's submissions go.
    pub fn submit(&self, id: Uuid) -> String {
        format!("{}/api/forms/{id}/submit", self.base())
    }

    /// Where a trial is claimed.
    pub fn claim(&self, token: &str) -> String {
        format!("{}/claim/{token}", self.base())
    }

    /// An asset: under its id, so that the address is known before its bytes are.
    pub fn asset(&self, id: Uuid, filename: &str) -> String {
        self.on_assets(&id.to_string(), filename)
    }

    /// A deployed image or font: under the digest of its bytes, in hexadecimal digits.
    pub fn asset_by_content(&self, sha256: &str, filename: &str) -> String {
        self.on_assets(sha256, filename)
    }

    fn on_assets(&self, folder: &str, filename: &str) -> String {
        let site = self.site("assets");
        let Ok(mut url) = Url::parse(&site) else { return site };
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(folder).push(filename);
        }
        url.into()
    }

    /// The subdomain a host name asks for; `None` for the base host and for names that are not ours.
    pub fn subdomain_of<'a>(&self, host: &'a str) -> Option<&'a str> {
        let name = host.strip_suffix(self.sites_domain.as_str())?.strip_suffix('.')?;
        (!name.is_empty() && !name.contains('.')).then_some(name)
    }
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host == "127.0.0.1" || host == "[::1]"
}

/// The last two labels, which is the registrable domain for most suffixes and too careful for the others.
fn parent(host: &str) -> &str {
    let from = host.rmatch_indices('.').nth(1).map_or(0, |(at, _)| at + 1);
    &host[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_keep_the_base_urls_scheme_and_port() {
        let local = Addresses::new("http://localhost:8080", "localhost").unwrap();
        assert_eq!(local.page("a-b", "index"), "http://a-b.localhost:8080/");
        assert_eq!(local.page("a-b", "x/y"), "http://a-b.localhost:8080/x/y");
        assert_eq!(local.short_page("xy", "a-b", true), "http://localhost:8080/p/xy");
        assert_eq!(local.short_page("xy", "a-b", false), "http://localhost:8080/p/xy?site=a-b");
        assert!(local.is_local());
    }

    #[test]
    fn an_assets_address_ends_with_its_name() {
        let local = Addresses::new("http://localhost:8080", "localhost").unwrap();
        let id = Uuid::from_u128(1);
        assert_eq!(
            local.asset(id, "a b?é.png"),
            format!("http://assets.localhost:8080/{id}/a%20b%3F%C3%A9.png")
        );
        assert_eq!(local.asset_by_content("ab", "x.woff2"), "http://assets.localhost:8080/ab/x.woff2");
    }

    #[test]
    fn only_one_label_below_the_sites_domain_is_a_site() {
        let addresses = Addresses::new("https://app.example.com", "pages.test").unwrap();
        assert_eq!(addresses.subdomain_of("a-b.pages.test"), Some("a-b"));
        for other in ["pages.test", ".pages.test", "a.b.pages.test", "a-bpages.test", "app.example.com", ""] {
            assert_eq!(addresses.subdomain_of(other), None, "{other}");
        }
    }

    #[test]
    fn user_pages_may_not_share_the_apis_domain() {
        assert!(Addresses::new("https://app.example.com", "sites.example.com").is_err());
        assert!(Addresses::new("https://example.com", "example.com").is_err());
        for wrong in ["ftp://x.test", "https://x.test/api", "x.test", ""] {
            assert!(Addresses::new(wrong, "pages.test").is_err(), "{wrong}");
        }
    }
}
