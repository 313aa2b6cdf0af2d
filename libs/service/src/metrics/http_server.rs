//! The duration of HTTP requests, by OpenTelemetry's semantic convention.

use std::time::Duration;

use http::{Method, StatusCode};
use instruments::{SECONDS, meter};
use opentelemetry::KeyValue;
use opentelemetry::metrics as otel;

/// The histogram `http.server.request.duration`, in seconds.
///
/// Prometheus shows it as `http_server_request_duration_seconds` with the labels `http_request_method`, `http_route`
/// and `http_response_status_code`. A route is a template such as `/api/forms/{id}`, never a path, so the number of
/// series is bounded by the number of endpoints.
#[derive(Clone, Debug)]
pub struct HttpServerRequestDuration(otel::Histogram<f64>);

/// Returns the process's histogram of HTTP requests. The caller keeps it, because creating it costs.
#[must_use]
pub fn http_server_request_duration() -> HttpServerRequestDuration {
    let builder = meter().f64_histogram("http.server.request.duration").with_unit("s");
    let builder = builder.with_description("Duration of HTTP requests by method, route and status.");
    HttpServerRequestDuration(builder.with_boundaries(SECONDS.to_vec()).build())
}

impl HttpServerRequestDuration {
    /// Records a request. `route` is the template of the matched route, or empty if none matched.
    pub fn record(&self, method: &Method, route: &str, status: StatusCode, elapsed: Duration) {
        let method = KeyValue::new("http.request.method", known_method(method));
        let status = KeyValue::new("http.response.status_code", i64::from(status.as_u16()));
        if route.is_empty() {
            self.0.record(elapsed.as_secs_f64(), &[method, status]);
        } else {
            let route = KeyValue::new("http.route", route.to_owned());
            self.0.record(elapsed.as_secs_f64(), &[method, route, status]);
        }
    }
}

/// The convention's bound: clients may invent methods, which all count as `_OTHER`.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "_OTHER",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::render;

    #[test]
    fn requests_are_counted_by_method_route_and_status() {
        let duration = http_server_request_duration();
        let elapsed = Duration::from_millis(7);
        duration.record(&Method::GET, "/f/{id}", StatusCode::OK, elapsed);
        duration.record(&Method::GET, "/f/{id}", StatusCode::OK, elapsed);
        duration.record(&Method::from_bytes(b"BREW").unwrap(), "", StatusCode::NOT_FOUND, elapsed);
        let text = render();
        let labels = r#"http_request_method="GET",http_response_status_code="200",http_route="/f/{id}""#;
        assert!(
            text.contains(&format!("http_server_request_duration_seconds_count{{{labels}}} 2")),
            "{text}"
        );
        let bucket = format!("http_server_request_duration_seconds_bucket{{{labels},le=\"0.01\"}} 2");
        assert!(text.contains(&bucket), "{text}");
        let unmatched = r#"_count{http_request_method="_OTHER",http_response_status_code="404"} 1"#;
        assert!(text.contains(unmatched), "{text}");
    }
}
