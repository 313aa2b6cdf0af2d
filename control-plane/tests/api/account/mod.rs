//! Account settings, trials, quotas, domains, subdomains and folders.

mod claim_link;
mod domains;
mod folders;
mod help;
mod quotas;
mod settings;
mod subdomains;
mod trial;
