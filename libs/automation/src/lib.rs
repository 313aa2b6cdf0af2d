//! The automation language: definitions, their validation, and their execution over a journal.
//!
//! A definition is JSON: a trigger and steps. Strings in it may hold templates, `{{ expression }}`. Nothing here does
//! I/O or reads a clock, so every rule is tested without a server.

pub mod check;
pub mod concurrency;
pub mod definition;
pub mod execution;
pub mod expressions;
pub mod http_trigger;
pub mod masking;
pub mod schedule;
pub mod templates;
