//! The shortest way through the edge: a page that is known right now is answered at once.
//!
//! No axum, no waiting, no Postgres or Redis, and no memory but what the answer's headers need. Whatever isn't
//! plainly such a hit gets `None` here and goes the long way, which decides everything anew.

use std::time::Instant;

use http::{HeaderMap, Method, Uri};

use crate::edge::{Edge, Whose};
use crate::hosts;
use crate::replies::{Reply, Sending, Source, request_id};
use crate::sites::Remembered;

/// The answer, if it can be given right now. `known` is what the connection remembers of the host it asks for.
pub(crate) fn answer(
    edge: &Edge,
    known: &mut Option<Remembered>,
    (method, uri, asked): (&Method, &Uri, &HeaderMap),
) -> Option<Reply> {
    let is_get = *method == Method::GET;
    if !is_get && *method != Method::HEAD {
        return None;
    }
    let slug = match uri.path() {
        "/" => domain::pages::INDEX,
        // Its address is `/`.
        "/index" => return None,
        path => path.strip_prefix('/')?,
    };
    let now = Instant::now();
    let written = hosts::written(asked, uri)?;
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
    if is_get {
        edge.views.count(page.views());
    }
    let request_id = request_id(asked, &edge.rng);
    Some(Sending { asked, claimed: site.claimed, from: Source::Memory, request_id }.page(&page))
}
