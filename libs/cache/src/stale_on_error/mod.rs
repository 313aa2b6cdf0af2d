//! A cache that returns the old value when a reload fails. It keeps warm pages available while every store is down.

mod cache;
mod entry;
mod in_flight;

pub use cache::{Bounds, Served, StaleOnErrorCache};
