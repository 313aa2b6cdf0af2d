//! Workflows: presets of forms, ready to use.

use axum::extract::State;
use domain::fields::Field;
use domain::workflows::{self, Category, Workflow};
use schemars::JsonSchema;
use serde::Serialize;
use web::{Created, Envelope, Path, Problem, Reply};

use super::forms::create::{CreateFormRequest, create_form};
use super::forms::views::CreatedForm;
use crate::App;
use crate::call::{Call, scope};

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("workflows")
        .get("/api/workflows", list, "List presets of forms")
        .get("/api/workflows/{id}", read, "Get a preset with its fields")
        .post("/api/workflows/{id}", create, "Create a form from a preset")
}

#[derive(Debug, Serialize, JsonSchema)]
struct WorkflowView {
    /// Id of the preset, for paths and for `workflowId` in forms.create.
    id: &'static str,
    /// Name of the preset.
    name: &'static str,
    /// Purpose of the preset.
    description: &'static str,
    /// Category of the preset.
    category: Category,
    /// Fields of the form to create.
    fields: Vec<Field>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WorkflowListResponse {
    /// All presets.
    workflows: Vec<WorkflowView>,
}

async fn list() -> Reply<WorkflowListResponse> {
    let workflows = workflows::ALL.iter().map(view).collect();
    Reply::new(Envelope::new(WorkflowListResponse { workflows }, None))
}

async fn read(Path(id): Path<String>) -> Result<Reply<WorkflowView>, Problem> {
    Ok(Reply::new(Envelope::new(view(find(&id)?), None)))
}

/// Requires the scope of workflows only: the caller does not design the form.
async fn create(
    call: Call<scope::WorkflowsCreate>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Created<CreatedForm>, Problem> {
    let mut form = CreateFormRequest::default();
    form.workflow_id = Some(find(&id)?.id.to_owned());
    create_form(call, &app, form).await
}

fn find(id: &str) -> Result<&'static Workflow, Problem> {
    workflows::find(id).ok_or_else(|| Problem::not_found("preset").hint("GET /api/workflows lists them"))
}

fn view(preset: &'static Workflow) -> WorkflowView {
    WorkflowView {
        id: preset.id,
        name: preset.name,
        description: preset.description,
        category: preset.category,
        fields: preset.fields(),
    }
}
