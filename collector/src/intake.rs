//! `POST /api/collect`: the one thing a visitor's browser sees of us. Whatever comes, the answer is 204: a page must
//! not fail, and a stranger must not learn, because an event wasn't counted.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, FromRef, State};
use axum::routing::{get, post};
use chrono::{DateTime, TimeDelta, Utc};
use contract::edge::EVENT_TIME;
use domain::tracking::{BODY_BYTES_MAX, Dropped};
use http::{HeaderMap, Method, StatusCode, header};
use service::Clock;
use tower_http::cors::{Any, CorsLayer};
use web::{ClientIp, EdgeTrust};

use crate::pipeline::{IncomingEvent, Pipeline, count_dropped};
use crate::tracker;

/// Of a longer user agent no more is looked at, nor remembered.
const USER_AGENT_BYTES: usize = 512;
/// How far back an event may say it happened; a batch of events may not touch too many of the warehouse's months.
const EVENT_TIME_BACK: TimeDelta = TimeDelta::days(400);

/// What the endpoint needs.
#[derive(Clone, FromRef)]
pub(crate) struct Intake {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) trust: EdgeTrust,
    pub(crate) times: Times,
}

/// Decides when an event happened.
#[derive(Clone)]
pub(crate) struct Times {
    pub(crate) clock: Clock,
    /// Whom to believe what an event says of that, if anybody.
    pub(crate) trusted_token: Option<EdgeTrust>,
}

pub(crate) fn router(intake: Intake) -> Router {
    // Any page may send; no cookie is involved.
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::POST])
        .allow_headers([header::CONTENT_TYPE]);
    Router::new()
        .route("/api/collect", post(collect))
        // The same on the hosts of sites, whose pages send to where they came from.
        .route("/_wr/collect", post(collect))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(cors)
        .route("/script.js", get(tracker::show))
        .route("/_wr/script.js", get(tracker::show))
        // Its name in pages that browsers keep since it had another.
        .route("/_wr/t.js", get(tracker::show))
        .with_state(intake)
}

async fn collect(
    State(pipeline): State<Arc<Pipeline>>,
    State(times): State<Times>,
    ClientIp(ip): ClientIp,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> StatusCode {
    match body {
        Ok(body) => {
            let now = times.clock.now();
            let arrival = IncomingEvent {
                body,
                ip,
                user_agent: beginning(text(&headers, header::USER_AGENT.as_str()), USER_AGENT_BYTES),
                headless: text(&headers, "sec-ch-ua").contains("Headless"),
                unwilling: ["dnt", "sec-gpc"].iter().any(|name| text(&headers, name) == "1"),
                at: times.of(&headers, now),
                taken_at: now,
            };
            // Why it was dropped is counted by the pipeline, and not the sender's business.
            let _counted = pipeline.take(&arrival).await;
        }
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            count_dropped(Dropped::TooLarge);
        }
        Err(_cut_off) => count_dropped(Dropped::Unreadable),
    }
    StatusCode::NO_CONTENT
}

impl Times {
    fn of(&self, headers: &HeaderMap, now: DateTime<Utc>) -> DateTime<Utc> {
        let is_believed = || self.trusted_token.as_ref().is_some_and(|trust| trust.vouches_for(headers));
        let said = DateTime::parse_from_rfc3339(text(headers, EVENT_TIME)).ok().filter(|_| is_believed());
        let believable = |time: &DateTime<Utc>| (now - EVENT_TIME_BACK..=now).contains(time);
        said.map(|time| time.to_utc()).filter(believable).unwrap_or(now)
    }
}

fn beginning(text: &str, max_bytes: usize) -> String {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default().to_owned()
}

/// A header as text; what isn't text counts as absent.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use contract::edge::TOKEN;

    use super::*;

    #[test]
    fn an_event_says_when_it_happened_only_where_that_is_allowed_and_beside_the_token() {
        let now = "2026-11-21T10:00:00Z".parse().unwrap();
        let of = |trusted_token: Option<&str>, said: &str| {
            let headers = [(EVENT_TIME, said), (TOKEN, "secret")];
            let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            let times = Times { clock: Clock::manual(now), trusted_token: trusted_token.map(EdgeTrust::new) };
            times.of(&HeaderMap::from_iter(headers), now)
        };
        let past = "2026-11-14T09:30:00+01:00";
        assert_eq!(of(Some("secret"), past), "2026-11-14T08:30:00Z".parse::<DateTime<Utc>>().unwrap());
        assert_eq!(of(Some("another"), past), now);
        assert_eq!(of(None, past), now);
        for unbelievable in ["2026-11-21T10:00:01Z", "2020-01-01T00:00:00Z", "yesterday", ""] {
            assert_eq!(of(Some("secret"), unbelievable), now, "{unbelievable}");
        }
    }
}
