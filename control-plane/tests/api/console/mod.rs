//! The console's pages over a real control plane, without a browser.

mod account;
mod analytics;
mod automations;
mod builder;
mod deliveries;
mod form_details;
mod forms;
mod inbox;
mod keys;
mod outages;
mod pages;
mod runs;
mod site_pages;
mod sites;
mod visitor;
mod webhooks;
