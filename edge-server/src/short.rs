//! `/p/<slug>` on the base host: a page without its site's name.
//!
//! User HTML must never share an origin with the API: a page here could call it with the visitor's cookie.
//! So the answer is sandboxed, which gives it an origin of its own.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use web::{Path, Query};

use crate::edge::Edge;
use crate::pages;

const SANDBOX: &str = "sandbox allow-scripts allow-forms allow-popups allow-modals";

/// Which site, where the bare address is another's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    site: Option<String>,
}

pub(crate) async fn show(
    State(edge): State<Edge>,
    Path(slug): Path<String>,
    Query(which): Query<Which>,
    headers: HeaderMap,
) -> Response {
    let holder = match which.site {
        Some(name) => Ok(Some(name)),
        None => holder_of(&edge, &slug).await,
    };
    let subdomain = match holder {
        Ok(Some(name)) => name,
        Ok(None) => return (StatusCode::NOT_FOUND, "There is no page at this address.\n").into_response(),
        Err(error) => {
            tracing::warn!(%error, "a short address can't be looked up");
            return (StatusCode::SERVICE_UNAVAILABLE, "This page can't be shown right now.\n")
                .into_response();
        }
    };
    let mut response = match pages::find(&edge, &subdomain, &domain::pages::path_of(&slug)).await {
        Ok((_, page)) => pages::answer(&headers, &page.value),
        Err(refusal) => return refusal,
    };
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    response
}

async fn holder_of(edge: &Edge, slug: &str) -> Result<Option<String>, store::Error> {
    let mut conn = store::acquire(&edge.db).await?;
    store::pages::find_short_address(&mut conn, slug).await
}
