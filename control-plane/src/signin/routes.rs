//! The routes of sign-in, which people use in a browser. `api/elsewhere` documents the redirects to providers; the other
//! routes are no part of the API.

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use super::handlers::{account, attempt, callback, claim, local, login, recipient};
use super::problem_pages::render_problems;
use crate::App;

/// Routes of the pages and of the redirects to and from providers.
pub(crate) fn routes(app: &App) -> Router<App> {
    let mut routes = Router::new()
        .route("/login", get(login::show))
        .route("/api/auth/oauth/{provider}", get(attempt::begin))
        .route("/api/auth/oauth/{provider}/callback", get(callback::finish))
        .route("/logout", post(account::sign_out))
        .route("/account", get(account::show))
        .route("/account/switch", post(account::switch))
        .route("/account/new", post(account::create))
        .route("/account/mails/{token}", get(recipient::show).post(recipient::answer))
        .route("/claim/{token}", get(claim::show).post(claim::claim));
    if app.signin.config.local {
        routes = routes.route("/login/local", get(local::show).post(local::sign_in));
    }
    routes.layer(from_fn_with_state(app.clone(), render_problems))
}
