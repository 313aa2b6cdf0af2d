//! Forms and their submissions.

pub mod answers;
pub mod appearance;
pub mod confirmation;
pub mod fields;
pub mod form_files;
pub mod forms;
pub mod honeypot;
pub mod patterns;
pub mod proof_of_work;
pub mod results;
pub mod stored_fields;
pub mod submissions;
pub mod workflows;
