//! The architecture as tests: crate layers, allowed libraries, module cycles, file layout, vocabulary and docs.

#![expect(clippy::expect_used, reason = "a rule that cannot be evaluated has failed")]

mod documents;
mod files;
mod instruments;
mod layers;
mod migrations;
mod module_cycles;
mod module_paths;
mod public_docs;
mod secret_settings;
mod source_tree;
mod vocabulary;
