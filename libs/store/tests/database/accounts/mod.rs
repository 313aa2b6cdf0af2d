//! Accounts: their counters, and their end.

mod purges;
mod usage;
