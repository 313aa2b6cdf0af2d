//! The public URLs of this installation: which host and path serve each resource.

use url::{Host, Url};
use uuid::Uuid;

use crate::pages;

/// The base host and the domain of all sites.
#[derive(Debug, Clone)]
pub struct Addresses {
    base_url: Url,
    sites_domain: String,
}

/// Whether a URL leads to this installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// This installation serves it.
    Own,
    /// This installation serves it if this host is a verified domain.
    OwnIfVerified(String),
    /// Another program serves it.
    Foreign,
}

/// The base URL or the sites domain is invalid.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The base URL is not an http(s) origin.
    #[error("base_url must be a http(s) address without path, like https://app.example.com: {0}")]
    BaseUrl(String),
    /// The sites domain shares the base URL's registrable domain.
    #[error(
        "sites_domain {0} shares the base URL's domain: a site's page could then act as its visitor on the API"
    )]
    SharedDomain(String),
}

impl Addresses {
    /// Creates the URLs of `base_url`, with sites under `sites_domain`.
    ///
    /// User HTML must never share cookies with the API, so neither host may be a subdomain of the other, and both may
    /// not share a parent domain. Localhost is excepted, because browsers send no cookies from one `*.localhost` site
    /// to another.
    pub fn new(base_url: &str, sites_domain: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError::BaseUrl(base_url.to_owned());
        let mut base_url = Url::parse(base_url).map_err(|_| wrong())?;
        // Requests are compared without the final dot of a fully qualified name, and in lower case.
        let host = base_url.host_str().ok_or_else(wrong)?.trim_end_matches('.').to_owned();
        base_url.set_host(Some(&host)).map_err(|_| wrong())?;
        let sites_domain = sites_domain.trim_end_matches('.').to_ascii_lowercase();
        if !matches!(base_url.scheme(), "http" | "https") || base_url.path() != "/" {
            return Err(wrong());
        }
        if !is_local(&host) && parent(&host) == parent(&sites_domain) {
            return Err(AddressError::SharedDomain(sites_domain));
        }
        Ok(Self { base_url, sites_domain })
    }

    /// Returns the origin of the base host, without a trailing slash.
    pub fn base(&self) -> &str {
        self.base_url.as_str().trim_end_matches('/')
    }

    /// Returns the base host's name, without the port.
    pub fn base_host(&self) -> &str {
        self.base_url.host_str().unwrap_or_default()
    }

    /// Returns whether this installation runs on localhost.
    pub fn is_local(&self) -> bool {
        is_local(self.base_host())
    }

    /// Returns the domain of all sites.
    pub fn sites_domain(&self) -> &str {
        &self.sites_domain
    }

    /// Returns a site's host name, without the port.
    pub fn site_host(&self, subdomain: &str) -> String {
        format!("{subdomain}.{}", self.sites_domain)
    }

    /// Returns a site's origin.
    pub fn site(&self, subdomain: &str) -> String {
        self.at(&self.site_host(subdomain))
    }

    /// Returns the origin of any host of this installation.
    pub fn at(&self, host: &str) -> String {
        let port = self.base_url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{host}{port}", self.base_url.scheme())
    }

    /// Returns whether this installation itself serves a URL, on its base host, on the host of a site, or on a custom domain.
    /// A webhook there could cause its own events. Other ports of a local installation belong to other programs.
    pub fn target_of(&self, url: &str) -> Target {
        let Ok(url) = Url::parse(url) else { return Target::Foreign };
        let Some(host) = url.host_str() else { return Target::Foreign };
        let host = host.trim_end_matches('.');
        let port = url.port_or_known_default();
        let is_own_port = match self.base_url.port() {
            Some(own) => port == Some(own),
            None => matches!(port, Some(80 | 443)),
        };
        if !is_own_port {
            return Target::Foreign;
        }
        let is_site = host
            .strip_suffix(self.sites_domain.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        let is_loopback = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(_)) | None => false,
        };
        if host == self.base_host() || is_site || (is_loopback && self.is_local()) {
            return Target::Own;
        }
        Target::OwnIfVerified(host.to_owned())
    }

    /// Returns a page's URL on its site.
    pub fn page(&self, subdomain: &str, slug: &str) -> String {
        format!("{}{}", self.site(subdomain), pages::path_of(slug))
    }

    /// Returns a page's URL on the base host: without a query if the page holds the short URL, else with `?site=`.
    pub fn short_page(&self, slug: &str, subdomain: &str, holds_short_address: bool) -> String {
        let site = if holds_short_address { String::new() } else { format!("?site={subdomain}") };
        format!("{}/p/{slug}{site}", self.base())
    }

    /// Returns the URL of a hosted form.
    pub fn form(&self, id: Uuid) -> String {
        format!("{}/f/{id}", self.base())
    }

    /// Returns the URL that accepts a form's submissions.
    pub fn submit(&self, id: Uuid) -> String {
        format!("{}/api/forms/{id}/submit", self.base())
    }

    /// Returns the HTML that shows a form in any page. `embed.js` is the edge's, and its address never changes.
    pub fn embed_code(&self, form_id: Uuid) -> String {
        format!(r#"<script src="{}/embed.js" data-form="{form_id}"></script>"#, self.base())
    }

    /// Returns the URL for claiming a trial.
    pub fn claim(&self, token: &str) -> String {
        format!("{}/claim/{token}", self.base())
    }

    /// Returns an asset's URL. It contains the id, not a digest, so that the URL is known before the upload.
    pub fn asset(&self, id: Uuid, filename: &str) -> String {
        self.on_assets(&id.to_string(), filename)
    }

    /// Returns the URL of a deployed image or font. It contains the SHA-256 of the content, in hexadecimal digits.
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

    /// Returns the subdomain of a host name, or `None` for the base host and for hosts outside the sites domain.
    pub fn subdomain_of<'a>(&self, host: &'a str) -> Option<&'a str> {
        let name = host.strip_suffix(self.sites_domain.as_str())?.strip_suffix('.')?;
        (!name.is_empty() && !name.contains('.')).then_some(name)
    }
}

/// Paths at which certificate authorities look for a proof that the operator controls a host.
const RESERVED_PATHS: [&str; 2] = ["/.well-known/acme-challenge", "/.well-known/pki-validation"];

/// Returns whether a path, percent-decoded, is reserved on every host: a page or file of a tenant there could obtain a
/// certificate for the host.
pub fn is_reserved_path(path: &str) -> bool {
    let is_below = |reserved: &str| {
        path.strip_prefix(reserved).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    RESERVED_PATHS.into_iter().any(is_below)
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host == "127.0.0.1" || host == "[::1]"
}

/// Returns the last two labels. That is the registrable domain for most public suffixes, and too strict for the
/// others.
fn parent(host: &str) -> &str {
    let from = host.rmatch_indices('.').nth(1).map_or(0, |(at, _)| at + 1);
    &host[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_share_the_base_urls_scheme_and_port() {
        let local = Addresses::new("http://localhost:8080", "localhost").unwrap();
        assert_eq!(local.page("a-b", "index"), "http://a-b.localhost:8080/");
        assert_eq!(local.page("a-b", "x/y"), "http://a-b.localhost:8080/x/y");
        assert_eq!(local.short_page("xy", "a-b", true), "http://localhost:8080/p/xy");
        assert_eq!(local.short_page("xy", "a-b", false), "http://localhost:8080/p/xy?site=a-b");
        assert!(local.is_local());
    }

    #[test]
    fn an_asset_url_ends_with_the_file_name() {
        let local = Addresses::new("http://localhost:8080", "localhost").unwrap();
        let id = Uuid::from_u128(1);
        assert_eq!(
            local.asset(id, "a b?é.png"),
            format!("http://assets.localhost:8080/{id}/a%20b%3F%C3%A9.png")
        );
        assert_eq!(local.asset_by_content("ab", "x.woff2"), "http://assets.localhost:8080/ab/x.woff2");
    }

    #[test]
    fn a_site_host_is_one_label_below_the_sites_domain() {
        let addresses = Addresses::new("https://app.example.com", "pages.test").unwrap();
        assert_eq!(addresses.subdomain_of("a-b.pages.test"), Some("a-b"));
        for other in ["pages.test", ".pages.test", "a.b.pages.test", "a-bpages.test", "app.example.com", ""] {
            assert_eq!(addresses.subdomain_of(other), None, "{other}");
        }
    }

    #[test]
    fn case_and_a_final_dot_hide_no_shared_domain() {
        for (base, sites) in [
            ("https://app.example.com", "sites.EXAMPLE.com"),
            ("https://app.example.com", "sites.example.com."),
            ("https://app.example.com.", "sites.example.com"),
            ("https://APP.example.COM.", "Sites.Example.Com."),
        ] {
            assert!(Addresses::new(base, sites).is_err(), "{base} {sites}");
        }
        let addresses = Addresses::new("https://App.example.com.", "Pages.Test.").unwrap();
        assert_eq!((addresses.base_host(), addresses.sites_domain()), ("app.example.com", "pages.test"));
        assert_eq!(addresses.subdomain_of("a-b.pages.test"), Some("a-b"));
        assert_eq!(addresses.base(), "https://app.example.com");
    }

    #[test]
    fn paths_of_certificate_authorities_are_reserved() {
        for path in [
            "/.well-known/acme-challenge/x",
            "/.well-known/acme-challenge",
            "/.well-known/pki-validation/a/b",
        ] {
            assert!(is_reserved_path(path), "{path}");
        }
        for path in ["/.well-known/security.txt", "/.well-known/acme-challenges", "/acme-challenge/x", "/"] {
            assert!(!is_reserved_path(path), "{path}");
        }
    }

    #[test]
    fn a_webhook_target_on_an_own_host_and_port_is_recognized_in_every_spelling() {
        let public = Addresses::new("https://app.example.com", "pages.test").unwrap();
        for own in [
            "https://app.example.com/api/forms/x/submit",
            "https://APP.example.com./x",
            "https://app.example.com:443",
            "http://app.example.com",
            "https://a-b.pages.test/_wr/collect",
            "https://pages.test",
            "https://x.y.pages.test",
        ] {
            assert_eq!(public.target_of(own), Target::Own, "{own}");
        }
        let domain = |host: &str| Target::OwnIfVerified(host.to_owned());
        assert_eq!(public.target_of("https://Shop.example./x"), domain("shop.example"));
        assert_eq!(public.target_of("https://apppages.test"), domain("apppages.test"));
        assert_eq!(public.target_of("https://example.com"), domain("example.com"));
        assert_eq!(public.target_of("https://127.0.0.1"), domain("127.0.0.1"));
        for foreign in ["https://app.example.com:8443", "https://shop.example:8443", "no url", "mailto:x@y"] {
            assert_eq!(public.target_of(foreign), Target::Foreign, "{foreign}");
        }
    }

    #[test]
    fn another_port_of_localhost_belongs_to_another_program() {
        let local = Addresses::new("http://localhost:8080", "localhost").unwrap();
        for own in
            ["http://localhost:8080/x", "http://a-b.localhost:8080", "http://127.1:8080", "http://[::1]:8080"]
        {
            assert_eq!(local.target_of(own), Target::Own, "{own}");
        }
        for foreign in ["http://localhost:3000", "http://127.0.0.1:3000", "https://a-b.localhost"] {
            assert_eq!(local.target_of(foreign), Target::Foreign, "{foreign}");
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
