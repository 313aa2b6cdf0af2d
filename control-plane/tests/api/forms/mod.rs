//! Forms and their presets.

mod update;
mod workflows;
