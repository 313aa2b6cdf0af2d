//! The loop of the fast path: reads requests, answers them in batches, and stops at the first that is not simple.
//!
//! It is generic over the stream, so that it also works behind TLS.

use std::sync::Arc;
use std::time::Instant;

use http::HeaderValue;
use tokio::io::{AsyncRead, AsyncWrite};

use super::handoff::Handoff;
use super::request_head::{self, ParsedHead, SimpleRequest};
use super::response_batch::{DateCache, ResponseBatch, ResponseMeta};
use super::watch::{READ_BYTES, Watch};
use crate::etag;
use crate::forms;
use crate::forms::pages::cached_page::CachedFormPage;
use crate::metrics::{HostLabel, count_response};
use crate::request_id::new_request_id;
use crate::sites::connection_cache::ConnectionCache;
use crate::sites::page_lookup;
use crate::sites::pages::encodings::Accepted;
use crate::state::EdgeState;
use crate::tls::ServedCertificate;
use crate::transport::connections::Connection;
use crate::transport::request_scheme::RequestScheme;

/// Reads after which an incomplete head is left to hyper. Every read parses the head again from its start.
const READS_MAX: usize = 4;

enum Found {
    /// A page or file of a site, and the kind of its host.
    OfSite(page_lookup::Found, HostLabel),
    Form(Arc<CachedFormPage>),
}

/// Where the requests of a connection come from.
#[derive(Clone, Copy, Default)]
pub(in crate::transport) struct Origin<'a> {
    /// The certificate of a TLS connection.
    pub(in crate::transport) certificate: Option<&'a ServedCertificate>,
    pub(in crate::transport) scheme: RequestScheme,
}

/// Serves a connection as long as its requests are simple ones for pages, and for hosts that its certificate covers. Returns `None` if it is closed.
pub(in crate::transport) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    state: &EdgeState,
    cache: &mut ConnectionCache,
    connection: &Arc<Connection>,
    origin: Origin<'_>,
) -> Option<Handoff> {
    let (batch, date) = (ResponseBatch::default(), DateCache::default());
    let mut fast_path = FastPath { state, cache, connection, origin, batch, date };
    let mut watch = Watch { connection, waker: None };
    let mut unread = Vec::new();
    let (mut reads, mut has_answered) = (0, false);
    loop {
        let (answered, next) = fast_path.answer_cached(&unread);
        if !fast_path.batch.is_empty() {
            fast_path.batch.write(stream, &mut watch).await.ok()?;
            unread.drain(..answered);
            (reads, has_answered) = (0, true);
        }
        match next {
            Next::Answer => continue,
            Next::LookUp => {
                // Boxed, so that an idle connection has no memory for a lookup.
                let mut lookup = Box::pin(fast_path.answer_next(&unread));
                let answered = watch.unless_aborted(lookup.as_mut()).await?;
                drop(lookup);
                let Some(answered) = answered else { return Some(Handoff::new(unread, has_answered)) };
                unread.drain(..answered);
            }
            Next::Read if reads < READS_MAX && unread.len() < READ_BYTES => {
                reads += 1;
                match watch.read(stream, &mut unread).await {
                    // hyper handles an incomplete head, both at the end of the stream and on shutdown.
                    None | Some(Ok(0)) if !unread.is_empty() => {
                        return Some(Handoff::new(unread, has_answered));
                    }
                    None | Some(Ok(0)) => {
                        watch.close(stream).await;
                        return None;
                    }
                    Some(Err(_)) => return None,
                    Some(Ok(_)) => {}
                }
            }
            Next::Read | Next::HandOff => return Some(Handoff::new(unread, has_answered)),
        }
    }
}

/// The next step once the batch is written.
enum Next {
    /// Answer further requests that have been read.
    Answer,
    /// Look up the page of the next request, which is not in the caches.
    LookUp,
    Read,
    HandOff,
}

struct FastPath<'a> {
    state: &'a EdgeState,
    cache: &'a mut ConnectionCache,
    connection: &'a Arc<Connection>,
    origin: Origin<'a>,
    batch: ResponseBatch,
    date: DateCache,
}

impl FastPath<'_> {
    /// Answers requests from the caches as long as that is possible. Returns how many bytes are answered.
    fn answer_cached(&mut self, unread: &[u8]) -> (usize, Next) {
        let mut at = 0;
        while at < unread.len() {
            if self.batch.is_full() {
                return (at, Next::Answer);
            }
            // hyper writes the connection's last response, with the header that says so.
            if self.connection.is_closing() {
                return (at, Next::HandOff);
            }
            let (request, len) = match request_head::parse(&unread[at..]) {
                ParsedHead::Simple(request, len) => (request, len),
                ParsedHead::Partial => break,
                ParsedHead::Other => return (at, Next::HandOff),
            };
            if self.origin.certificate.is_some_and(|certificate| !certificate.covers(request.host)) {
                return (at, Next::HandOff);
            }
            let now = Instant::now();
            let Some(found) = self.find_cached(&request, now) else { return (at, Next::LookUp) };
            self.add(&request, &found, now);
            at += len;
        }
        (at, Next::Read)
    }

    fn find_cached(&mut self, request: &SimpleRequest<'_>, now: Instant) -> Option<Found> {
        let page = request.page_request(self.origin.scheme);
        if let Some(form) = forms::page_lookup::find_cached(self.state, &page, request.accept_language, now) {
            return Some(Found::Form(form));
        }
        let accepted = Accepted::from_values(request.accept_encoding.into_iter());
        page_lookup::find_cached(self.state, self.cache, &page, accepted, now)
            .map(|(found, host)| Found::OfSite(found, host))
    }

    /// Answers the first request in `unread`, waiting for a lookup if necessary. Returns the request's length, or `None`
    /// if the answer is no page or file from memory.
    async fn answer_next(&mut self, unread: &[u8]) -> Option<usize> {
        let ParsedHead::Simple(request, len) = request_head::parse(unread) else { return None };
        let _active = self.connection.begin_response();
        let page = request.page_request(self.origin.scheme);
        let found = match forms::page_lookup::find(self.state, &page, request.accept_language).await {
            Some(form) => Found::Form(form),
            None => {
                let accepted = Accepted::from_values(request.accept_encoding.into_iter());
                let (found, host) = page_lookup::find(self.state, &page, accepted).await?;
                Found::OfSite(found, host)
            }
        };
        self.add(&request, &found, Instant::now());
        Some(len)
    }

    fn add(&mut self, request: &SimpleRequest<'_>, found: &Found, now: Instant) {
        self.connection.record_request();
        let accepted = Accepted::from_values(request.accept_encoding.into_iter());
        let DateCache { text: date, second, .. } = self.date.at(now, &self.state.clock);
        let received = request.request_id.filter(|id| web::is_valid_request_id(id));
        let generated = received.is_none().then(|| new_request_id(&self.state.rng));
        let request_id = received.or(generated.as_ref().map(<[u8; 32]>::as_slice)).unwrap_or_default();
        let meta = ResponseMeta { is_get: request.is_get, request_id, date };
        match found {
            Found::OfSite(found, host) => {
                let is_known =
                    |etag: &HeaderValue| etag::is_listed_in(request.if_none_match.into_iter(), etag);
                let response = found.respond(self.state, request.is_get, accepted, is_known);
                count_response(*host, response.status());
                self.batch.add(&response, &meta);
            }
            Found::Form(page) => {
                let (body, is_gzip) = self.state.form_renderer.fill(page, accepted, *second);
                let response = page.response(&body, is_gzip);
                count_response(HostLabel::Base, response.status());
                self.batch.add(&response, &meta);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use service::config::{Sources, load};
    use service::{Drain, Draining, Shutdown};
    use store::subdomains::Site;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use uuid::Uuid;

    use super::*;
    use crate::config::{Config, DEFAULTS};
    use crate::sites::pages::rendered_page::RenderedPage;
    use crate::transport::connections::ConnectionTable;

    #[tokio::test]
    async fn answers_over_a_stream_other_than_tcp_and_hands_off_the_rest() {
        let blobs = sandbox::test::folder();
        let set = vec![
            format!("blobs.url={}", blobs.path().display()),
            "http.base_url=http://localhost:8080".to_owned(),
            "http.sites_domain=localhost".to_owned(),
            "secrets.edge_token=0123456789abcdef".to_owned(),
        ];
        let config: Config = load(DEFAULTS, &Sources { set, ..Sources::default() }).unwrap().config;
        let state = EdgeState::new(&config).unwrap();
        let subdomain_id = Uuid::from_u128(1);
        let site = Site { subdomain_id, claimed: true, ..Site::default() };
        state.sites.insert("quiet-otter", site.clone()).await;
        let page = RenderedPage::new(Uuid::from_u128(2), "<p>hello</p>".to_owned());
        state.answers.insert(&site, "/", page).await;

        let (mut client, mut server) = tokio::io::duplex(1_024);
        let draining = Draining::new(Drain::default(), &Shutdown::new());
        let table = ConnectionTable::new(config.connections.clone(), draining);
        let (guard, mut cache) = (table.insert(None, Instant::now()), ConnectionCache::default());
        let get = "GET / HTTP/1.1\r\nHost: quiet-otter.localhost\r\n\r\n";
        let post = "POST / HTTP/1.1\r\nHost: quiet-otter.localhost\r\n\r\n";
        let exchange = async {
            client.write_all([get, get, post].concat().as_bytes()).await.unwrap();
            let mut received = Vec::new();
            while String::from_utf8_lossy(&received).matches("</p>").count() < 2 {
                assert_ne!(client.read_buf(&mut received).await.unwrap(), 0);
            }
            String::from_utf8(received).unwrap()
        };
        let served = serve(&mut server, &state, &mut cache, &guard.connection, Origin::default());
        let (handoff, received) = tokio::join!(served, exchange);
        assert_eq!(received.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{received}");
        assert_eq!(received.matches("x-cache: hit\r\n").count(), 2, "{received}");
        assert_eq!(handoff.unwrap().unread, post.as_bytes());
    }
}
