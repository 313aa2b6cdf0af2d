//! Keys of cached answers.

use equivalent::Equivalent;
use uuid::Uuid;

use super::answer::Target;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AnswerKey {
    /// [`store::subdomains::Site::content_id`]: previews share no answers with their live site.
    pub(super) content_id: Uuid,
    pub(super) target: Target<Box<str>>,
    /// The URL that relative links refer to, for a page that is shown at its short URL.
    pub(super) base_url: Option<Box<str>>,
}

impl AnswerKey {
    pub(super) fn new(content_id: Uuid, target: Target<&str>) -> Self {
        Self { content_id, target: target.map(Box::from), base_url: None }
    }

    /// Returns the memory of the texts.
    pub(super) fn weight_bytes(&self) -> usize {
        self.target.text().len() + self.base_url.as_ref().map_or(0, |url| url.len())
    }
}

/// A borrowed [`AnswerKey`], which saves a copy of the address per lookup.
#[derive(Hash)]
pub(super) struct AnswerRef<'a> {
    pub(super) content_id: Uuid,
    pub(super) target: Target<&'a str>,
    pub(super) base_url: Option<&'a str>,
}

impl Equivalent<AnswerKey> for AnswerRef<'_> {
    fn equivalent(&self, key: &AnswerKey) -> bool {
        self.content_id == key.content_id
            && self.target == key.target.as_ref().map(|text| &**text)
            && self.base_url == key.base_url.as_deref()
    }
}
