//! Workflows: forms that are ready to be asked.

use axum::extract::State;
use domain::fields::Field;
use domain::presets::{self, Category, Preset};
use schemars::JsonSchema;
use serde::Serialize;
use web::{Created, Envelope, Path, Problem, Reply};

use super::form_views::FormAddresses;
use super::forms::{self, NewForm};
use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("workflows")
        .get("/api/workflows", list, "List the presets of forms")
        .get("/api/workflows/{id}", read, "Read a preset with its fields")
        .post("/api/workflows/{id}", create, "Create a form from a preset")
}

#[derive(Debug, Serialize, JsonSchema)]
struct WorkflowView {
    /// Its word in addresses, and the `workflowId` of a form to be made of it.
    id: &'static str,
    name: &'static str,
    description: &'static str,
    category: Category,
    fields: Vec<Field>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Workflows {
    workflows: Vec<WorkflowView>,
}

async fn list() -> Reply<Workflows> {
    let workflows = presets::ALL.iter().map(view).collect();
    Reply::new(Envelope::new(Workflows { workflows }, None))
}

async fn read(Path(id): Path<String>) -> Result<Reply<WorkflowView>, Problem> {
    Ok(Reply::new(Envelope::new(view(find(&id)?), None)))
}

/// Its own scope is all it needs: the form is none of the caller's making.
async fn create(
    call: Call<scope::WorkflowsCreate>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Created<FormAddresses>, Problem> {
    let mut form = NewForm::default();
    form.workflow_id = Some(find(&id)?.id.to_owned());
    forms::make(call, &app, form).await
}

fn find(id: &str) -> Result<&'static Preset, Problem> {
    presets::find(id).ok_or_else(|| Problem::not_found("preset").hint("GET /api/workflows lists them"))
}

fn view(preset: &'static Preset) -> WorkflowView {
    WorkflowView {
        id: preset.id,
        name: preset.name,
        description: preset.description,
        category: preset.category,
        fields: preset.fields(),
    }
}
