//! Rejects writes that another site's page sends with the viewer's cookie. The API checks `Origin` again.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{StatusCode, header};

use crate::api_client::Refusal;
use crate::page::Page;
use crate::state::Console;
use crate::viewer::Viewer;

/// Middleware: a request that may change something must come from a page of this host.
pub(crate) async fn check(
    State(console): State<Console>,
    viewer: Viewer,
    request: Request,
    next: Next,
) -> Response {
    let is_ours = viewer.header(header::ORIGIN) == Some(&console.assets.base)
        && viewer.header("sec-fetch-site").is_none_or(|site| site == "same-origin");
    if request.method().is_safe() || is_ours {
        return next.run(request).await;
    }
    let detail =
        format!("This form was not posted from a page of {}. Nothing was changed.", console.assets.base);
    let refusal = Refusal::new(StatusCode::FORBIDDEN, "foreign_origin", "Not from here", &detail);
    Page::refused(&refusal).respond(&console, &viewer, &console.account(&viewer).await)
}
