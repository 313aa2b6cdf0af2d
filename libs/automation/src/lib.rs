//! The language of automations: what users write, what it means, and which of it is refused.
//!
//! A definition is JSON: a trigger and steps. Strings in it may hold templates, `{{ expression }}`. Nothing here does
//! I/O or reads a clock, so every rule is tested without a server.

pub mod check;
pub mod definition;
pub mod execution;
pub mod expressions;
pub mod http_trigger;
pub mod masking;
pub mod schedule;
pub mod templates;
