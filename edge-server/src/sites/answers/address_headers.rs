//! Headers that a site sets at an address by its `_headers`.

use std::sync::{Arc, OnceLock};

use domain::static_sites::headers::HeaderRules;
use domain::static_sites::site_path::RequestPath;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::sites::files::file_templates::{FileResponse, FileTemplates};
use crate::sites::header_templates::{HeaderTemplate, NOINDEX, page_headers};

/// The headers of one address. Ours come first, and a site's value replaces ours only where it may set one.
#[derive(Debug)]
pub(crate) struct AddressHeaders {
    set: HeaderMap,
    is_claimed: bool,
    /// Templates of the page: of a 304, and of a response with a body. Built for the first of them.
    page: OnceLock<[HeaderTemplate; 2]>,
    /// Templates of the file, in the order of [`FileResponse`].
    file: OnceLock<[HeaderTemplate; 3]>,
}

impl AddressHeaders {
    /// Returns the headers of a request; `None` if there are none.
    pub(super) fn new(rules: &HeaderRules, request: &RequestPath, is_claimed: bool) -> Option<Arc<Self>> {
        if rules.is_empty() {
            return None;
        }
        let own_robots = (!is_claimed).then_some(NOINDEX);
        let pairs = rules.headers_of(request, own_robots).into_iter();
        let pairs = pairs.filter_map(|header| {
            let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(&header.value).ok()?))
        });
        let set = HeaderMap::from_iter(pairs);
        (!set.is_empty())
            .then(|| Arc::new(Self { set, is_claimed, page: OnceLock::new(), file: OnceLock::new() }))
    }

    /// Sets the headers in a response.
    pub(crate) fn apply_to(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.set {
            headers.insert(name, value.clone());
        }
    }

    /// Returns the template for a page. Without `with_body` it is one for a 304.
    pub(crate) fn page_template(&self, with_body: bool) -> &HeaderTemplate {
        let templates = self.page.get_or_init(|| {
            [false, true].map(|with_body| {
                let mut headers = page_headers(with_body, false, self.is_claimed);
                self.apply_to(&mut headers);
                HeaderTemplate::new(headers)
            })
        });
        &templates[usize::from(with_body)]
    }

    /// Returns the template for the file at the address.
    pub(crate) fn file_template(&self, file: &FileTemplates, response: FileResponse) -> &HeaderTemplate {
        let templates = self.file.get_or_init(|| file.with(|headers| self.apply_to(headers)));
        &templates[response as usize]
    }

    /// Returns the memory of the headers, with the templates.
    pub(crate) fn weight_bytes(&self) -> usize {
        let texts: usize = self.set.iter().map(|(name, value)| 64 + name.as_str().len() + value.len()).sum();
        3_072 + 6 * texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &str, is_claimed: bool) -> Option<Arc<AddressHeaders>> {
        let (rules, notes) = HeaderRules::parse(text.as_bytes());
        assert_eq!(notes, []);
        AddressHeaders::new(&rules, &RequestPath::parse("/a").unwrap(), is_claimed)
    }

    #[test]
    fn a_page_has_the_headers_of_the_site_beside_ours() {
        let text = "/a\n Cache-Control: no-store\n Referrer-Policy: no-referrer\n X-Robots-Tag: nofollow";
        let found = headers(text, false).unwrap();
        for with_body in [false, true] {
            let template = found.page_template(with_body);
            let lines = String::from_utf8(template.lines.clone()).unwrap();
            for line in [
                "cache-control: no-store\r\n",
                "referrer-policy: no-referrer\r\n",
                "x-robots-tag: noindex, nofollow\r\n",
            ] {
                assert_eq!(lines.matches(line).count(), 1, "{lines}");
            }
            for line in ["content-type: text/html; charset=utf-8\r\n", "x-content-type-options: nosniff\r\n"]
            {
                assert_eq!(lines.matches(line).count(), usize::from(with_body), "{lines}");
            }
            assert_eq!(template.headers["cache-control"], "no-store");
        }
        assert!(headers("/b\n Cache-Control: no-store", true).is_none());
        assert!(headers("", true).is_none());
    }
}
