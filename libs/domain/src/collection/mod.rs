//! Forms and their submissions.

pub mod answers;
pub mod fields;
pub mod form_files;
pub mod forms;
pub mod honeypot;
pub mod patterns;
pub mod proof_of_work;
pub mod results;
pub mod submissions;
pub mod workflows;
