//! The API document: its lock, its coverage and its suggestions.

mod coverage;
mod lock;
mod suggestions;
