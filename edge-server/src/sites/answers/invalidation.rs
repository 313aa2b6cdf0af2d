//! Removes cached answers when a page or a site changes.

use std::time::Duration;

use domain::pages;
use domain::static_sites::address;
use uuid::Uuid;

use super::answer::{Answer, CachedAnswer, Target};
use super::answer_cache::AnswerCache;
use super::answer_key::{AnswerKey, AnswerRef};

impl AnswerCache {
    /// Removes a page, with the path of the file that it shows, from all its addresses. It may be deleted or unpublished,
    /// so it must not be served stale.
    pub(crate) fn remove_page(&self, subdomain_id: Uuid, slug: &str, path: Option<&str>) {
        let addresses = address::addresses_of_page(slug, path);
        let contents = [Some(Target::Slug(slug)), path.map(Target::Path)].into_iter().flatten();
        let mut was_cached = false;
        for target in addresses.iter().map(|address| Target::Address(address.as_str())).chain(contents) {
            let cached =
                self.answers.peek_stale(&AnswerRef { content_id: subdomain_id, target, base_url: None });
            was_cached |= cached.is_some_and(|cached| is_page(&cached, target, (slug, path)));
            self.answers.remove(&AnswerKey::new(subdomain_id, target));
        }
        // A page that is new may answer addresses that had another answer or none. Each entry of the cache is looked at, so
        // not for every page that is edited.
        let may_answer_others =
            path.is_some_and(address::is_fallback) || self.ruled_sites.contains(subdomain_id);
        if !was_cached && may_answer_others {
            self.answers.remove_where(|key, cached| {
                key.content_id == subdomain_id && !matches!(cached.answer, Answer::Page(_))
            });
        }
    }

    /// Invalidates all answers of a live site. Those of a preview never change.
    pub(crate) fn invalidate_site(&self, subdomain_id: Uuid) {
        self.answers.invalidate_where(|key, _| key.content_id == subdomain_id);
    }

    /// Removes all answers of a site: they must not be served stale.
    pub(crate) fn remove_site(&self, subdomain_id: Uuid) {
        self.answers.remove_where(|key, _| key.content_id == subdomain_id);
    }

    /// Limits the age of entries while no signals arrive; `None` lifts the limit.
    pub(crate) fn limit_age(&self, limit: Option<Duration>) {
        self.answers.limit_age(limit);
    }

    /// Invalidates every answer.
    pub(crate) fn invalidate_all(&self) {
        self.answers.mark_all_stale();
    }
}

/// Returns whether a cached answer for a target is the page with this slug and path.
fn is_page(cached: &CachedAnswer, target: Target<&str>, (slug, path): (&str, Option<&str>)) -> bool {
    let Answer::Page(page) = &cached.answer else { return false };
    let is_own = match target {
        Target::Address(address) => address == pages::path_of(slug),
        Target::Slug(_) | Target::Path(_) => true,
    };
    // A path is that of one page. Without one, the slug is.
    page.path() == path && (path.is_some() || is_own)
}
