//! CORS: lets scripts of any origin send requests without credentials and read the responses.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

/// Adds `Access-Control-Allow-Origin: *` to a response.
pub(crate) async fn allow_any_origin(mut response: Response) -> Response {
    let any = HeaderValue::from_static("*");
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
    response
}

/// Answers a preflight request.
pub(crate) fn preflight(methods: &'static str, headers: &'static str) -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, methods),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, headers),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}
