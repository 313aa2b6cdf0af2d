//! Creates a form together with what its submissions lead to: notifications of chats, and entries of a page. All or nothing.

use axum::extract::State;
use contract::Change;
use domain::fields::{Field, MAX_FIELDS};
use domain::scopes::{Action, Resource};
use domain::webhooks::{self, Template};
use domain::{FieldError, forms};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::forms::Form;
use store::usage;
use uuid::Uuid;
use web::{Created, Json, Problem};

use super::forms::create::insert_form;
use super::forms::views::{FormUrls, addresses};
use super::webhooks::insert::WebhookInput;
use crate::App;
use crate::call::{Call, scope};
use crate::next_steps::After;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("pipeline").post(
        "/api/pipeline",
        create,
        "Create a form with notifications in Slack and Discord and entries on a page, all or nothing",
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreatePipelineRequest {
    /// Display name of the form.
    #[schemars(length(min = 1, max = forms::NAME_CHARS_MAX))]
    name: String,
    /// The questions, in order.
    #[schemars(length(min = 1, max = MAX_FIELDS))]
    fields: Vec<Field>,
    /// Chats to notify of each submission. Requires `webhooks:create`; each is one webhook of the plan.
    notify: Option<NotifyInput>,
    /// Rejects a submission if its answers to all of these fields equal those of an earlier one.
    #[schemars(length(max = forms::UNIQUE_BY_MAX))]
    unique_by: Option<Vec<String>>,
    /// Message shown after a submission.
    #[schemars(length(max = forms::SUCCESS_MESSAGE_CHARS_MAX))]
    success_message: Option<String>,
    /// Page that gets an entry for each submission, rendered with its `entryTemplate`; the placeholders are the field
    /// names. Requires `entries:create`.
    auto_entry_page_id: Option<Uuid>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NotifyInput {
    /// URL of an incoming webhook of Slack.
    #[schemars(length(max = webhooks::URL_BYTES_MAX), extend("format" = "uri"))]
    slack: Option<String>,
    /// URL of a webhook of a Discord channel.
    #[schemars(length(max = webhooks::URL_BYTES_MAX), extend("format" = "uri"))]
    discord: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PipelineResponse {
    #[serde(flatten)]
    urls: FormUrls,
    /// The webhooks that notify the chats.
    webhooks: Vec<PipelineWebhook>,
    /// Page that gets an entry for each submission; null for none.
    auto_entry_page_id: Option<Uuid>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PipelineWebhook {
    id: Uuid,
    /// The chat it notifies.
    template: Template,
}

async fn create(
    call: Call<scope::FormsCreate>,
    State(app): State<App>,
    Json(request): Json<CreatePipelineRequest>,
) -> Result<Created<PipelineResponse>, Problem> {
    let (mut form, inputs) = request.read(&call, &app)?;
    if !inputs.is_empty() {
        call.require_scope(Resource::Webhooks, Action::Create)?;
    }
    let mut tx = store::begin(&app.db).await?;
    // First, as every transaction that counts resources does.
    usage::lock(&mut tx, call.account_id).await?;
    insert_form(&call, &mut tx, &mut form, None).await?;
    check_webhooks_left(&call, &mut tx, inputs.len()).await?;
    let mut webhooks = Vec::with_capacity(inputs.len());
    for input in inputs {
        let template = input.template;
        let id = input.insert(&call, &app, &mut tx).await?.webhook.id;
        webhooks.push(PipelineWebhook { id, template });
    }
    call.set_changed(Resource::Forms, form.id, &form.name);
    call.commit(&app, tx, vec![Change::Form { form_id: form.id }]).await?;
    let webhook_id = webhooks.first().map(|webhook| webhook.id);
    let next = call.suggestions(&app, After::Pipeline { form_id: form.id, webhook_id }).await;
    let (urls, auto_entry_page_id) = (addresses(&app, form.id), form.auto_entry_page_id);
    Ok(call.created(PipelineResponse { urls, webhooks, auto_entry_page_id }).with_next(next))
}

/// Checks that the plan has enough webhooks for all chats. The account's usage must be locked. Without this, the refusal of
/// the second webhook would count the first, which does not exist.
async fn check_webhooks_left<S>(call: &Call<S>, tx: &mut store::Tx, asked: usize) -> Result<(), Problem> {
    let (limit, asked) = (call.limits().webhooks, i64::try_from(asked).unwrap_or(i64::MAX));
    let used = usage::find_usage(tx, call.account_id).await?.map_or(0, |usage| usage.webhooks);
    // After a downgrade an account may have more than its plan includes.
    if asked == 0 || limit < 0 || asked <= limit.saturating_sub(used) {
        return Ok(());
    }
    Err(call.quota_exceeded("webhooks", limit, used, asked))
}

impl CreatePipelineRequest {
    /// Returns the form and the webhooks to create, validated.
    fn read<S>(self, call: &Call<S>, app: &App) -> Result<(Form, Vec<WebhookInput>), Problem> {
        let mut form = Form::new(app.rng.uuid_v7(call.now), self.name, self.fields, call.now);
        form.unique_by = self.unique_by;
        form.success_message = self.success_message;
        form.auto_entry_page_id = self.auto_entry_page_id;
        let mut errors = forms::check(&form.settings());
        let NotifyInput { slack, discord } = self.notify.unwrap_or_default();
        let chats =
            [("notify.slack", Template::Slack, slack), ("notify.discord", Template::Discord, discord)];
        let mut inputs = Vec::new();
        for (url_field, template, url) in chats {
            let Some(url) = url else { continue };
            errors.extend(check_chat(url_field, template, &url));
            let input = WebhookInput {
                url_field,
                url,
                events: Vec::new(),
                description: Some(form.name.clone()),
                field_mapping: None,
                template,
                telegram_chat_id: None,
                form_ids: Some(vec![form.id]),
            };
            // The description is the form's name, which is checked as such.
            errors.extend(input.check(app).into_iter().filter(|error| error.field != "description"));
            inputs.push(input);
        }
        if errors.is_empty() { Ok((form, inputs)) } else { Err(Problem::validation(errors)) }
    }
}

/// Returns the error of a URL that is one of another chat. Any other URL may be one of a server that speaks like the chat.
fn check_chat(field: &str, template: Template, url: &str) -> Option<FieldError> {
    let other = Template::of_address(url).filter(|found| *found != template)?;
    let message = format!("{field} is an address of {}, not of {}", other.as_str(), template.as_str());
    Some(FieldError::new(field, "other_chat", message))
}
