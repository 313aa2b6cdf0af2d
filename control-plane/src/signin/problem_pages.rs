//! Renders problems as HTML pages for browsers.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header;
use web::{Code, Problem};

use super::templates::Notice;
use crate::App;

/// Middleware that replaces a problem by a page if the client accepts HTML.
pub(super) async fn render_problems(State(app): State<App>, request: Request, next: Next) -> Response {
    let accepted = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let is_browser = accepted.is_some_and(|accepted| accepted.contains("text/html"));
    let response = next.run(request).await;
    let Some(problem) = response.extensions().get::<Problem>().filter(|_| is_browser) else {
        return response;
    };
    let code = problem.code();
    let (title, text) = match code {
        Code::Unavailable => {
            ("Back soon", "This page can't be shown right now. Please try again in a moment.")
        }
        Code::Internal => ("Our mistake", "Something went wrong on our side. Please try again in a moment."),
        _ => (code.title(), problem.detail()),
    };
    let notice = Notice { status: problem.status(), title, text, link: None };
    let mut page = app.signin.templates.notice(&notice);
    if let Some(seconds) = response.headers().get(header::RETRY_AFTER) {
        page.headers_mut().insert(header::RETRY_AFTER, seconds.clone());
    }
    page
}
