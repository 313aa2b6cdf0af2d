//! What a definition touches, for the checks of a key's scopes and restrictions: on save, and again at each step.

use domain::scopes::{Action as Verb, Resource, Scope};
use uuid::Uuid;

use crate::definition::{Action, AutomationDefinition, FindIn, Step, Trigger};

/// A resource that a definition touches, and the scope that this needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUse {
    /// Path of the field that names it, such as `steps[2].pageId`.
    pub path: String,
    /// Kind of the resource with the id; entries are restricted with their page, submissions with their form.
    pub resource: Resource,
    /// Its id; `None` for a page that is found by its slug at run time.
    pub id: Option<Uuid>,
    /// The required scope.
    pub scope: Scope,
}

/// Lists what a definition touches, in the order of the text.
pub fn resources(definition: &AutomationDefinition) -> Vec<ResourceUse> {
    let mut found = Vec::new();
    if let Trigger::FormSubmission(trigger) = &definition.trigger {
        let scope = Scope::new(Resource::Submissions, Verb::Read);
        let path = "trigger.formId".to_owned();
        found.push(ResourceUse { path, resource: Resource::Forms, id: Some(trigger.form_id), scope });
    }
    for (path, step) in definition.all_steps() {
        found.extend(of_step(&path, step));
    }
    found
}

/// Lists what one step touches.
pub fn of_step(path: &str, step: &Step) -> Vec<ResourceUse> {
    let of = |field: &str, resource, id, part, verb| ResourceUse {
        path: format!("{path}.{field}"),
        resource,
        id,
        scope: Scope::new(part, verb),
    };
    let page = |id: Uuid, verb| vec![of("pageId", Resource::Pages, Some(id), Resource::Entries, verb)];
    let form = |id: Uuid, verb| vec![of("formId", Resource::Forms, Some(id), Resource::Submissions, verb)];
    match &step.action {
        Action::CreateEntry(entry) => page(entry.page_id, Verb::Create),
        Action::DeleteEntry(entry) => page(entry.page_id, Verb::Delete),
        Action::Find(find) => match find.source {
            FindIn::Entries => find.page_id.map(|id| page(id, Verb::Read)).unwrap_or_default(),
            FindIn::Submissions => find.form_id.map(|id| form(id, Verb::Read)).unwrap_or_default(),
        },
        Action::CreateSubmission(submission) => form(submission.form_id, Verb::Create),
        Action::SendWebhook(webhook) => {
            vec![of(
                "webhookId",
                Resource::Webhooks,
                Some(webhook.webhook_id),
                Resource::Deliveries,
                Verb::Create,
            )]
        }
        Action::UpdatePage(update) => {
            let field = if update.page_id.is_some() { "pageId" } else { "slug" };
            let mut uses = vec![of(field, Resource::Pages, update.page_id, Resource::Pages, Verb::Update)];
            if update.upsert {
                uses.push(of("upsert", Resource::Pages, None, Resource::Pages, Verb::Create));
            }
            if let Some(id) = update.subdomain_id {
                uses.push(of("subdomainId", Resource::Subdomains, Some(id), Resource::Pages, Verb::Update));
            }
            if let Some(id) = update.folder_id.flatten() {
                uses.push(of("folderId", Resource::Folders, Some(id), Resource::Pages, Verb::Update));
            }
            uses
        }
        _ => Vec::new(),
    }
}
