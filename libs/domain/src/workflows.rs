//! Presets: forms that are ready to be asked, called workflows in the API.
//!
//! Which there are and what they ask is the specification's; how they are called, described and labelled is ours.

mod catalogue;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

pub use catalogue::ALL;

use crate::fields::{Field, FieldType};

/// What a preset is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "WorkflowCategory")]
pub enum Category {
    /// People who may become customers.
    LeadGen,
    /// What people think.
    Feedback,
    /// What doesn't work.
    Support,
    /// Who takes part.
    Signup,
}

/// A form that is ready to be asked.
#[derive(Debug)]
pub struct Workflow {
    /// Its word in addresses, also the `workflowId` of a form to be made of it.
    pub id: &'static str,
    /// Its name, which a form made of it bears.
    pub name: &'static str,
    /// A sentence about it.
    pub description: &'static str,
    /// What it is for.
    pub category: Category,
    questions: &'static [Question],
}

impl Workflow {
    /// What it asks.
    pub fn fields(&self) -> Vec<Field> {
        self.questions.iter().map(Question::field).collect()
    }
}

/// The preset with that id.
pub fn find(id: &str) -> Option<&'static Workflow> {
    ALL.iter().find(|workflow| workflow.id == id)
}

/// A field as the catalogue writes it.
#[derive(Debug, Clone, Copy)]
struct Question {
    name: &'static str,
    label: &'static str,
    kind: FieldType,
    required: bool,
    options: &'static [&'static str],
    between: Option<(f64, f64)>,
    /// Of a file: what, and how many bytes at most.
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
            options: self.options.iter().map(ToString::to_string).collect(),
            min_length: None,
            max_length: None,
            pattern: None,
            min: self.between.map(|(min, _)| min),
            max: self.between.map(|(_, max)| max),
            accept: self.accept.map(|(accept, _)| accept.to_owned()),
            max_file_size: self.accept.map(|(_, bytes)| bytes),
            show_if: None,
        }
    }
}
