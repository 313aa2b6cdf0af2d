//! The shortest way through the edge: a page that is known right now is answered at once.
//!
//! No waiting, no Postgres or Redis, and no memory but what the answer's headers need. Whatever isn't plainly such a
//! hit gets `None` here and goes the long way, which decides everything anew. The rule stands here once; those who
//! ask it are the quick lane (`quick`) and the door behind hyper.

use std::time::Instant;

use http::{HeaderMap, Method, Uri};

use crate::edge::{Edge, Whose};
use crate::hosts;
use crate::rendered::Rendered;
use crate::replies::{Reply, Sending, Source, request_id};
use crate::sites::Remembered;

/// What a GET or HEAD asks for.
pub(crate) struct Wanted<'a> {
    /// What stands for the host, as it was written.
    pub(crate) host: &'a str,
    /// Without the query.
    pub(crate) path: &'a str,
    /// GET: who asks will see the page.
    pub(crate) is_get: bool,
}

/// A page that is known right now.
pub(crate) struct Hit {
    pub(crate) page: Rendered,
    /// Whether its site belongs to somebody.
    pub(crate) claimed: bool,
}

/// The page, if it can be sent right now; it is counted. `known` is what the connection remembers of the host it
/// asks for.
pub(crate) fn find(
    edge: &Edge,
    known: &mut Option<Remembered>,
    wanted: &Wanted<'_>,
    now: Instant,
) -> Option<Hit> {
    let slug = slug(wanted.path)?;
    let written = wanted.host;
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
    Some(Hit { page, claimed: site.claimed })
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
    known: &mut Option<Remembered>,
    (method, uri, asked): (&Method, &Uri, &HeaderMap),
) -> Option<Reply> {
    let is_get = *method == Method::GET;
    if !is_get && *method != Method::HEAD {
        return None;
    }
    let wanted = Wanted { host: hosts::written(asked, uri)?, path: uri.path(), is_get };
    let Hit { page, claimed } = find(edge, known, &wanted, Instant::now())?;
    let request_id = request_id(asked, &edge.rng);
    Some(Sending { asked, claimed, from: Source::Memory, request_id }.page(&page))
}
