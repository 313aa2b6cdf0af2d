//! `POST /api/collect`, the endpoint that visitors' browsers send events to. It always answers 204: a dropped event
//! must not break a page, and a stranger must not learn why it was dropped.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, FromRef, State};
use axum::routing::{get, post};
use chrono::{DateTime, TimeDelta, Utc};
use contract::edge::EVENT_TIME;
use domain::depth;
use domain::tracking::{BODY_BYTES_MAX, Dropped};
use http::{HeaderMap, Method, StatusCode, header};
use service::Clock;
use tower_http::cors::{Any, CorsLayer};
use web::{ClientIp, EdgeTrust};

use crate::dropped_events::count_dropped;
use crate::incoming_event::IncomingEvent;
use crate::pipeline::Pipeline;
use crate::running_events::RunningEvents;
use crate::tracker;

/// A longer user agent is cut, so that it takes no more memory in caches.
const MAX_USER_AGENT_BYTES: usize = 512;
/// The maximum age of an event by its `x-event-time` header. It bounds how many monthly partitions of the warehouse one
/// batch touches.
const MAX_EVENT_AGE: TimeDelta = TimeDelta::days(400);

/// The state of the router.
#[derive(Clone, FromRef)]
pub(crate) struct IntakeState {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) running: RunningEvents,
    pub(crate) trust: EdgeTrust,
    pub(crate) event_times: EventTimes,
}

/// Determines when an event occurred.
#[derive(Clone)]
pub(crate) struct EventTimes {
    pub(crate) clock: Clock,
    /// Authorizes the `x-event-time` header; `None` ignores it.
    pub(crate) trusted_token: Option<EdgeTrust>,
}

pub(crate) fn router(state: IntakeState) -> Router {
    // Pages of any origin may send; no cookie is involved.
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::POST])
        .allow_headers([header::CONTENT_TYPE]);
    Router::new()
        .route("/api/collect", post(collect))
        // The same endpoint on the hosts of sites: their pages send to their own origin.
        .route("/_wr/collect", post(collect))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(cors)
        .route("/script.js", get(tracker::show))
        .route("/_wr/script.js", get(tracker::show))
        // The former name, for pages in browsers' caches.
        .route("/_wr/t.js", get(tracker::show))
        .with_state(state)
}

async fn collect(
    State(pipeline): State<Arc<Pipeline>>,
    State(running): State<RunningEvents>,
    State(event_times): State<EventTimes>,
    ClientIp(ip): ClientIp,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> StatusCode {
    match body {
        Ok(body) => {
            let arrived_at = event_times.clock.now();
            let event = IncomingEvent {
                body,
                ip,
                user_agent: truncate(text(&headers, header::USER_AGENT.as_str()), MAX_USER_AGENT_BYTES),
                headless: text(&headers, "sec-ch-ua").contains("Headless"),
                do_not_track: ["dnt", "sec-gpc"].iter().any(|name| text(&headers, name) == "1"),
                depth: depth::parse(
                    headers.get_all(depth::HEADER).iter().filter_map(|value| value.to_str().ok()),
                ),
                occurred_at: event_times.occurred_at(&headers, arrived_at),
                arrived_at,
            };
            let process = async move {
                // The pipeline counts the reason of a drop; the sender must not see it.
                let _ignored = pipeline.process(event).await;
            };
            running.run(process).await;
        }
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            count_dropped(Dropped::TooLarge);
        }
        Err(_cut_off) => count_dropped(Dropped::Unreadable),
    }
    StatusCode::NO_CONTENT
}

impl EventTimes {
    fn occurred_at(&self, headers: &HeaderMap, now: DateTime<Utc>) -> DateTime<Utc> {
        let is_trusted = || self.trusted_token.as_ref().is_some_and(|trust| trust.trusts(headers));
        let header = DateTime::parse_from_rfc3339(text(headers, EVENT_TIME)).ok().filter(|_| is_trusted());
        let is_in_range = |time: &DateTime<Utc>| (now - MAX_EVENT_AGE..=now).contains(time);
        header.map(|time| time.to_utc()).filter(is_in_range).unwrap_or(now)
    }
}

fn truncate(text: &str, max_bytes: usize) -> String {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default().to_owned()
}

/// Returns a header as text; empty if it is absent or not text.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use contract::edge::TOKEN;

    use super::*;

    #[test]
    fn the_event_time_header_needs_the_setting_and_the_edge_token() {
        let now = "2026-11-21T10:00:00Z".parse().unwrap();
        let occurred_at = |trusted_token: Option<&str>, header: &str| {
            let headers = [(EVENT_TIME, header), (TOKEN, "the-token-of-the-edge")];
            let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            let event_times = EventTimes {
                clock: Clock::manual(now),
                trusted_token: trusted_token.map(|token| EdgeTrust::new(token).unwrap()),
            };
            event_times.occurred_at(&HeaderMap::from_iter(headers), now)
        };
        let past = "2026-11-14T09:30:00+01:00";
        assert_eq!(
            occurred_at(Some("the-token-of-the-edge"), past),
            "2026-11-14T08:30:00Z".parse::<DateTime<Utc>>().unwrap()
        );
        assert_eq!(occurred_at(Some("another-token-of-it"), past), now);
        assert_eq!(occurred_at(None, past), now);
        for out_of_range in ["2026-11-21T10:00:01Z", "2020-01-01T00:00:00Z", "yesterday", ""] {
            assert_eq!(occurred_at(Some("the-token-of-the-edge"), out_of_range), now, "{out_of_range}");
        }
    }
}
