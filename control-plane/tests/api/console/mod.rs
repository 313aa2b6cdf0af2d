//! The console's pages over a real control plane, without a browser.

mod account;
mod analytics;
mod forms;
mod keys;
mod outages;
mod pages;
mod visitor;
mod webhooks;
