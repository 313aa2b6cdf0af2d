//! Signing in and claiming over a real database, with providers that say what a test wants them to say.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod accounts;
mod attempts;
mod browser;
mod claims;
mod github;
mod local;
mod pages;
mod provider;
mod recipients;
mod sessions;
mod settings;
mod stand;
mod tokens;
