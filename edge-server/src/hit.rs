//! The shortest way through the edge: a page that is known right now is answered at once.
//!
//! No waiting, no Postgres or Redis, and no memory but what the answer's headers need. Whatever isn't plainly such a
//! hit gets `None` here and goes the long way, which decides everything anew. The rule stands here once; those who
//! ask it are the quick lane (`quick`) and the door behind hyper. The lane also waits for pages that have to be asked
//! about again, as otherwise all its connections would leave it for one page that is a minute old.

use std::time::Instant;

use http::{HeaderMap, Method, Uri};

use crate::edge::{Edge, Whose};
use crate::memory::Memory;
use crate::rendered::Rendered;
use crate::replies::{Reply, Sending, Source, request_id};
use crate::serving::Found;
use crate::sites::Host;
use crate::{assets, hosts, serving};

/// What a GET or HEAD asks for.
pub(crate) struct Wanted<'a> {
    /// What stands for the host, as it was written.
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    /// What stands behind the path's `?`.
    pub(crate) query: &'a str,
    /// GET: who asks will see the page.
    pub(crate) is_get: bool,
}

impl<'a> Wanted<'a> {
    /// As hyper has read it; `None` for other methods, and where nobody can say for which host it is.
    pub(crate) fn read(method: &Method, uri: &'a Uri, asked: &'a HeaderMap) -> Option<Self> {
        let is_get = *method == Method::GET;
        if !is_get && *method != Method::HEAD {
            return None;
        }
        let host = hosts::written(asked, uri)?;
        Some(Self { host, path: uri.path(), query: uri.query().unwrap_or_default(), is_get })
    }
}

/// A page to be sent.
pub(crate) struct Hit {
    pub(crate) page: Rendered,
    /// Whether its site belongs to somebody.
    pub(crate) claimed: bool,
    pub(crate) from: Source,
}

/// The page, if it can be sent right now; it is counted. `memory` is the connection's.
pub(crate) fn find(edge: &Edge, memory: &mut Memory, wanted: &Wanted<'_>, now: Instant) -> Option<Hit> {
    let slug = slug(wanted.path)?;
    let (written, known) = (wanted.host, &mut memory.site);
    if !known.as_ref().is_some_and(|known| *known.host == *written && edge.sites.is_still_so(known, now)) {
        let Whose::Site(host) = edge.whose(hosts::plain(written)?) else { return None };
        *known = edge.sites.peek(host, written, now);
    }
    let site = &known.as_ref()?.site;
    if site.suspended || site.moved_to.is_some() {
        return None;
    }
    let page = edge.pages.peek(site.subdomain_id, slug, now)??;
    edge.count(Source::Memory);
    if wanted.is_get {
        edge.views.count(page.views());
    }
    Some(Hit { page, claimed: site.claimed, from: Source::Memory })
}

/// The page, asked about anew or waited for if it isn't known right now. `None` for all that isn't simply sent.
pub(crate) async fn ask(edge: &Edge, wanted: &Wanted<'_>) -> Option<Hit> {
    let slug = domain::pages::slug_at(wanted.path).filter(|_| wanted.path != "/index")?;
    let Whose::Site(host) = edge.whose(hosts::plain(wanted.host)?) else { return None };
    if host == Host::Subdomain(assets::NAME) {
        return None;
    }
    let Found { site, page } = serving::find(edge, host, slug).await.ok()?;
    if site.moved_to.is_some() {
        return None;
    }
    if wanted.is_get {
        edge.views.count(page.value.views());
    }
    Some(Hit { claimed: site.claimed, from: edge.came(&page), page: page.value })
}

/// The slug at a path, if it could be one.
fn slug(path: &str) -> Option<&str> {
    match path {
        "/" => Some(domain::pages::INDEX),
        // Its address is `/`.
        "/index" => None,
        path => path.strip_prefix('/'),
    }
}

/// The answer to a request that hyper has read, if it can be given right now.
pub(crate) fn answer(
    edge: &Edge,
    memory: &mut Memory,
    wanted: &Wanted<'_>,
    asked: &HeaderMap,
) -> Option<Reply> {
    let Hit { page, claimed, from } = find(edge, memory, wanted, Instant::now())?;
    let request_id = request_id(asked, &edge.rng);
    Some(Sending { asked, claimed, from, request_id }.page(&page))
}
