//! Signing in, as a person meets it: a page with the ways to do so ([`login`]), out to a provider ([`attempt`]) and
//! back ([`callback`]), a session in this browser ([`session`]), and then their account ([`account`]) or a trial to
//! make theirs ([`claim`]). Beside it, who is to be mailed of submissions says whether they want that ([`recipient`]).
//!
//! Everything here works without JavaScript. What a page may do is written on it by [`pages`]; what a form may do is
//! checked by where it comes from ([`origin`]).

mod account;
mod attempt;
mod callback;
mod claim;
mod config;
pub mod cookie;
mod local;
mod login;
pub mod origin;
mod pages;
mod providers;
pub(crate) mod recipient;
pub mod session;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use domain::addresses::Addresses;
use domain::base62;
use service::{Clock, Rng};

pub use config::Config;

use self::cookie::Cookies;
use self::pages::Pages;
use self::providers::Providers;
use crate::App;

/// What signing in needs beside the stores.
pub struct SignIn {
    /// The settings.
    pub(crate) config: Config,
    /// How cookies are called here.
    pub cookies: Cookies,
    providers: Providers,
    pages: Pages,
}

impl SignIn {
    /// # Errors
    /// A setting can't be used.
    pub(crate) fn new(config: &Config, addresses: &Addresses, clock: &Clock) -> anyhow::Result<Self> {
        config.check(addresses)?;
        Ok(Self {
            cookies: Cookies::new(addresses),
            providers: Providers::new(config, addresses, clock)?,
            pages: Pages::new()?,
            config: config.clone(),
        })
    }
}

/// The pages, and the ways out to the providers and back.
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
    routes.layer(from_fn_with_state(app.clone(), pages::in_words))
}

/// 256 bits that nobody guesses, in letters and digits.
fn token(rng: &Rng) -> String {
    base62::encode(&rng.bytes::<32>(), cookie::TOKEN_DIGITS)
}

/// The values that a posted form has under a name.
fn posted(form: &[u8], name: &str) -> Vec<String> {
    let pairs = form_urlencoded::parse(form).filter(|(key, _)| key == name);
    pairs.map(|(_, value)| value.into_owned()).collect()
}
