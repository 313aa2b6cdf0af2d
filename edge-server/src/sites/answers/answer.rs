//! What an address of a site answers.

use std::sync::Arc;

use store::site_addresses::FoundFile;
use store::subdomains::Site;
use uuid::Uuid;

use super::address_headers::AddressHeaders;
use crate::sites::files::site_file::SiteFile;
use crate::sites::pages::rendered_page::RenderedPage;

/// What a cached answer is for: an address, or the content that any number of addresses may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Target<T> {
    /// An address, as `RequestPath::address` writes it. Where the query decides the answer, it follows after a `?`, and
    /// the address alone has [`Answer::ByQuery`].
    Address(T),
    /// The page or file at a path, at whichever address it is shown.
    Path(T),
    /// The page with a slug, at whichever address it is shown.
    Slug(T),
}

impl<T> Target<T> {
    pub(crate) fn map<U>(self, with: impl FnOnce(T) -> U) -> Target<U> {
        match self {
            Self::Address(text) => Target::Address(with(text)),
            Self::Path(text) => Target::Path(with(text)),
            Self::Slug(text) => Target::Slug(with(text)),
        }
    }

    pub(crate) fn as_ref(&self) -> Target<&T> {
        match self {
            Self::Address(text) => Target::Address(text),
            Self::Path(text) => Target::Path(text),
            Self::Slug(text) => Target::Slug(text),
        }
    }

    pub(crate) fn text(&self) -> &T {
        match self {
            Self::Address(text) | Self::Path(text) | Self::Slug(text) => text,
        }
    }
}

/// What an address answers.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// A page at an address of its own.
    Page(RenderedPage),
    File(Arc<SiteFile>),
    /// The answer of another target: a page that is shown at none of its own addresses, by a rule or as a fallback. It is
    /// cached once, however many addresses show it.
    Alias(Target<Arc<str>>),
    /// A redirect to this `Location`.
    Redirect(Arc<str>),
    /// The query decides: the answer has a key of its own with the query.
    ByQuery,
    NotFound,
}

impl Answer {
    fn weight_bytes(&self) -> usize {
        match self {
            Self::Page(page) => page.weight_bytes(),
            Self::File(file) => {
                let FoundFile { path, file, .. } = &file.found;
                256 + path.len() + file.filename.len() + file.content_type.len()
            }
            Self::Alias(target) => target.text().len(),
            Self::Redirect(location) => location.len(),
            Self::ByQuery | Self::NotFound => 0,
        }
    }
}

/// An answer, and the state of the site that it was made for.
#[derive(Debug, Clone)]
pub(crate) struct CachedAnswer {
    pub(crate) answer: Answer,
    pub(crate) status: u16,
    /// Headers of the address that the site itself sets.
    pub(crate) headers: Option<Arc<AddressHeaders>>,
    pub(super) deploy_id: Option<Uuid>,
    pub(super) is_claimed: bool,
}

impl CachedAnswer {
    /// Returns an answer without headers of the site.
    pub(crate) fn new(site: &Site, answer: Answer, status: u16) -> Self {
        Self { answer, status, headers: None, deploy_id: site.deploy_id, is_claimed: site.claimed }
    }

    /// Returns whether the answer was made for this state of its site. Site and answers are invalidated one after the
    /// other, so for a moment one of them is older.
    pub(crate) fn is_of(&self, site: &Site) -> bool {
        self.deploy_id == site.deploy_id && self.is_claimed == site.claimed
    }

    pub(super) fn page(self) -> Option<RenderedPage> {
        match self.answer {
            Answer::Page(page) => Some(page),
            _ => None,
        }
    }

    pub(super) fn weight_bytes(&self) -> usize {
        self.answer.weight_bytes() + self.headers.as_ref().map_or(0, |headers| headers.weight_bytes())
    }
}

/// What a request answers: a [`CachedAnswer`] with the page that it shows.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    /// Never [`Answer::Alias`] or [`Answer::ByQuery`].
    pub(crate) answer: Answer,
    pub(crate) status: u16,
    pub(crate) headers: Option<Arc<AddressHeaders>>,
    /// Whether a page is shown at none of its own addresses.
    pub(crate) is_elsewhere: bool,
}

impl From<CachedAnswer> for Resolved {
    fn from(cached: CachedAnswer) -> Self {
        let CachedAnswer { answer, status, headers, .. } = cached;
        Self { answer, status, headers, is_elsewhere: false }
    }
}
