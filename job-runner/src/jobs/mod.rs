//! Background work, one file for each noun it belongs to.

mod automations;
pub(crate) mod blobs;
pub(crate) mod certificates;
mod domains;
pub(crate) mod help;
pub(crate) mod kept_files;
pub(crate) mod mails;
pub(crate) mod notifications;
pub(crate) mod previews;
pub(crate) mod purges;
pub(crate) mod recipients;
pub(crate) mod webhooks;
