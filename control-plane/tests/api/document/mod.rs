//! The API document: its lock, its coverage and its suggestions.

mod coverage;
mod generators;
mod lock;
mod suggestions;
mod tailored_suggestions;
mod tools;
