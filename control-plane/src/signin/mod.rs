//! Signing in. A visitor picks a provider ([`handlers::login`]), is redirected to it ([`handlers::attempt`]) and back
//! ([`handlers::callback`]), gets a session in this browser and, unless the way began at a claim
//! link, a first account ([`session`]), and then manages accounts
//! ([`handlers::account`]) or claims a trial ([`handlers::claim`]). Beside that, recipients of submission mails give
//! their consent ([`handlers::recipient`]).
//!
//! All pages work without JavaScript. [`templates`] sets their security headers; [`origin`] rejects forms posted from
//! other sites.

mod config;
pub(crate) mod cookie;
mod first_account;
mod form;
mod fresh;
mod handlers;
pub(crate) mod origin;
mod problem_pages;
mod providers;
mod return_to;
mod routes;
mod session;
pub(crate) mod state;
mod templates;
pub mod token;

pub use config::Config;
pub(crate) use handlers::recipient::ConfirmationLink;
pub(crate) use routes::routes;
