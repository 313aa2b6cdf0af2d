//! The schema: which ones a program accepts, and what holds for all of its tables.

mod accepted_schemas;
mod released_statements;
mod resealing;
