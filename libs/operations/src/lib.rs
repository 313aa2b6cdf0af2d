//! What an operator does to an installation: migrations, checks, accounts, keys, backups, and work that got stuck.
//!
//! Functions take connections and return values, most of which have a text of one screen. Arguments, settings and printing
//! belong to the programs: `deploy/operator` and `deploy/local`.

pub mod accounts;
pub mod audit;
pub mod backups;
pub mod checks;
pub mod deliveries;
pub mod keys;
pub mod migrations;
pub mod outbox;
