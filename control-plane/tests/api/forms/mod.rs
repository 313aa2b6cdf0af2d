//! Forms and their presets.

mod appearance;
mod embedding;
mod update;
mod workflows;
