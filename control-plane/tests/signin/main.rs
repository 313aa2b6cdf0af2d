//! Tests of signing in and claiming, over a real database and with scripted providers.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod accounts;
mod attempts;
mod browser;
mod claims;
mod fixture;
mod fresh;
mod github;
mod local;
mod pages;
mod provider;
mod recipients;
mod sessions;
mod settings;
mod tokens;
