//! Chooses the colours of the pages.

use axum::extract::State;
use axum::response::Response;
use http::{HeaderValue, header};

use crate::form_submission::FormSubmission;
use crate::page::redirect;
use crate::state::Console;
use crate::viewer::{THEME_COOKIE, Theme};

const MAX_AGE_SECONDS: u32 = 365 * 24 * 3_600;

/// Stores the choice in a cookie.
pub(crate) async fn update(State(console): State<Console>, form: FormSubmission) -> Response {
    let theme = Theme::parse(form.get("theme").unwrap_or_default());
    let mut response = redirect(&console, return_path(form.get("here")), None);
    let secure = if console.is_secure() { "; Secure" } else { "" };
    let cookie = format!(
        "{THEME_COOKIE}={}; Path=/; Max-Age={MAX_AGE_SECONDS}; HttpOnly; SameSite=Lax{secure}",
        theme.as_str()
    );
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Returns the page that a form came from, if it is one of the console.
pub(super) fn return_path(here: Option<&str>) -> &str {
    let is_ours = |path: &&str| {
        let end = path.find(['?', '#']).unwrap_or(path.len());
        let (page, rest) = path.split_at(end);
        let is_page = page == "/console" || page.starts_with("/console/");
        is_page
            && !page.contains("..")
            && rest.chars().chain(page.chars()).all(|c| c.is_ascii_graphic() && c != '\\')
    };
    here.filter(is_ours).unwrap_or("/console")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_only_to_pages_of_the_console() {
        for ours in ["/console", "/console?x=1", "/console/forms/1?search=a%20b"] {
            assert_eq!(return_path(Some(ours)), ours);
        }
        for other in [
            "//evil.test",
            "/consoleX",
            "https://evil.test/console",
            "/console/../login",
            "/console/\\x",
            "/console\n",
        ] {
            assert_eq!(return_path(Some(other)), "/console", "{other}");
        }
    }
}
