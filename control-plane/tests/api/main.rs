//! The management API over real stores: one service, in this process.

mod coverage;
mod document;
mod harness;
mod pages;
mod quotas;
mod trial;
