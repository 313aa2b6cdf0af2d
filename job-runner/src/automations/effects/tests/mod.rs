//! Effects over a real database, at the level of [`perform`](super::perform).

mod authority;
mod claims;
mod entries;
mod fetch;
mod find;
mod fixture;
mod pages;
mod receiver;
mod respond;
mod ssrf;
mod submissions;
mod webhooks;
