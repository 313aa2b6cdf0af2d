//! What Postgres holds for analytics: sites, salts and views.

mod salts;
mod sites;
mod views;
