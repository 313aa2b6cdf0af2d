//! Workflows: predefined forms.
//!
//! The specification lists them and their fields; names, descriptions and labels are ours.

mod catalogue;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

pub use catalogue::ALL;

use crate::fields::{Field, FieldType};

/// Purpose of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "WorkflowCategory")]
pub enum Category {
    /// Potential customers.
    LeadGen,
    /// Opinions.
    Feedback,
    /// Problem reports.
    Support,
    /// Registrations.
    Signup,
}

/// A predefined form.
#[derive(Debug)]
pub struct Workflow {
    /// Id in URLs, and the `workflowId` of a form created from it.
    pub id: &'static str,
    /// Name of the workflow and of a form created from it.
    pub name: &'static str,
    /// One sentence.
    pub description: &'static str,
    pub category: Category,
    questions: &'static [Question],
}

impl Workflow {
    /// Returns the form's fields.
    pub fn fields(&self) -> Vec<Field> {
        self.questions.iter().map(Question::field).collect()
    }
}

/// Returns the workflow with that id.
pub fn find(id: &str) -> Option<&'static Workflow> {
    ALL.iter().find(|workflow| workflow.id == id)
}

/// A field in the catalogue's notation.
#[derive(Debug, Clone, Copy)]
struct Question {
    name: &'static str,
    label: &'static str,
    kind: FieldType,
    required: bool,
    options: &'static [&'static str],
    between: Option<(f64, f64)>,
    /// For a file: `accept` and the maximum size in bytes.
    accept: Option<(&'static str, u64)>,
}

impl Question {
    fn field(&self) -> Field {
        Field {
            name: self.name.to_owned(),
            label: self.label.to_owned(),
            kind: self.kind,
            required: self.required,
            placeholder: None,
            help: None,
            display: None,
            options: self.options.iter().map(ToString::to_string).collect(),
            min_length: None,
            max_length: None,
            pattern: None,
            pattern_hint: None,
            min: self.between.map(|(min, _)| min),
            max: self.between.map(|(_, max)| max),
            accept: self.accept.map(|(accept, _)| accept.to_owned()),
            max_file_size: self.accept.map(|(_, bytes)| bytes),
            effective_max_file_size: None,
            show_if: None,
        }
    }
}
