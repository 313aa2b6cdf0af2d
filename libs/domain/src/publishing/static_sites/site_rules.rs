//! The rules that a deploy brings along with its files, as they are stored with it.

use serde::{Deserialize, Serialize};

use super::headers::HeaderRules;
use super::redirects::Redirects;
use super::resolution::Resolver;

/// What a site answers besides its files. Without any rules, the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SiteRules {
    /// The parsed `_redirects`.
    pub redirects: Redirects,
    /// The parsed `_headers`.
    pub headers: HeaderRules,
    /// Whether addresses without a file answer with `index.html`, as single-page applications need.
    pub spa: bool,
}

impl SiteRules {
    /// Returns whether nothing differs from a site without rules.
    pub fn is_empty(&self) -> bool {
        self.redirects.is_empty() && self.headers.is_empty() && !self.spa
    }

    /// Returns what resolves requests by these rules.
    pub fn resolver(&self) -> Resolver<'_> {
        Resolver { redirects: &self.redirects, spa: self.spa }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_back_as_they_were_stored() {
        let (redirects, notes) = Redirects::parse(b"/old /new 301\n/* /index.html 200\n", |_| false);
        assert_eq!(notes, []);
        let (headers, notes) = HeaderRules::parse(b"/*\n  Referrer-Policy: no-referrer\n");
        assert_eq!(notes, []);
        let rules = SiteRules { redirects, headers, spa: true };
        let stored = serde_json::to_value(&rules).unwrap();
        assert_eq!(serde_json::from_value::<SiteRules>(stored).unwrap(), rules);
        assert!(!rules.is_empty() && SiteRules::default().is_empty());
        assert_eq!(serde_json::from_str::<SiteRules>("{}").unwrap(), SiteRules::default());
    }
}
