//! The management API over real stores: one service, in this process.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod account;
mod analytics;
mod archives;
mod assets;
mod bad_input;
mod batch;
mod coverage;
mod deploys;
mod document;
mod domains;
mod entries;
mod erasure;
mod exports;
mod folders;
mod form_edits;
mod harness;
mod help;
mod idempotency;
mod keys;
mod matrix;
mod narrow;
mod next;
mod page_edits;
mod pages;
mod quotas;
mod subdomains;
mod submission_files;
mod submission_lists;
mod submissions;
mod trial;
mod unchanged;
mod versions;
mod webhook_deliveries;
mod webhooks;
mod workflows;
