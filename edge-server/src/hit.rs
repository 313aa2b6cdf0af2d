//! The shortest way through the edge: a page that is known right now is answered at once.
//!
//! No axum, no waiting, no Postgres or Redis, and no memory but what the answer's headers need. Whatever isn't
//! plainly such a hit gets `None` here and goes the long way, which decides everything anew.

use std::time::Instant;

use http::{HeaderMap, Method, Uri};

use crate::edge::{Edge, Whose};
use crate::hosts;
use crate::replies::{Reply, Sending, Source, request_id};

/// The answer, if it can be given right now.
pub(crate) fn answer(edge: &Edge, method: &Method, uri: &Uri, asked: &HeaderMap) -> Option<Reply> {
    let is_get = *method == Method::GET;
    if !is_get && *method != Method::HEAD {
        return None;
    }
    let Whose::Site(host) = edge.whose(hosts::written_plainly(asked, uri)?) else { return None };
    let slug = match uri.path() {
        "/" => domain::pages::INDEX,
        // Its address is `/`.
        "/index" => return None,
        path => path.strip_prefix('/')?,
    };
    let now = Instant::now();
    let site = edge.sites.peek(host, now)?;
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
