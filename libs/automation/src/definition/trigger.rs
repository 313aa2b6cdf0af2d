//! What starts a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::kinds::kinds;

kinds! {
    /// What starts a run; `type` says which of these it is.
    Trigger, TriggerType, () {
        FormSubmission(FormSubmissionTrigger) = "form_submission",
        Http(HttpTrigger) = "http",
        Schedule(ScheduleTrigger) = "schedule",
    }
}

/// A run for each submission to a form, unless it is spam. `trigger` has `payload` (the answers), `submissionId`,
/// `formId`, `externalId` and `createdAt`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FormSubmissionTrigger {
    /// The form.
    pub form_id: Uuid,
}

/// A run for each request to the automation's `triggerUrl`. `trigger` has `payload` (the JSON body; null without one),
/// `query`, `method` and `headers` (lowercase names: `content-type`, `user-agent`, `x-…` and the signature's; never
/// cookies or `authorization`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpTrigger {
    /// The only accepted method; others are answered 405.
    #[serde(default)]
    pub method: HttpMethod,
    /// Authentication of requests. Without it, every request to the URL starts a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<HttpAuth>,
    /// Whether scripts on other sites may call the URL and read its answer (`Access-Control-Allow-Origin: *`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cors: bool,
}

/// Method of an http trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(rename = "HttpTriggerMethod")]
pub enum HttpMethod {
    /// GET; `trigger.payload` is null.
    Get,
    /// POST.
    #[default]
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl HttpMethod {
    /// Returns the method as it stands in a request, such as `POST`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Authentication of requests to an http trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "HttpTriggerAuth")]
pub struct HttpAuth {
    /// How the caller proves that it knows the secret.
    #[serde(rename = "type")]
    pub kind: HttpAuthType,
    /// Name of the variable in `env` that holds the secret.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub env: String,
}

/// How a request to an http trigger proves that its caller knows the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "HttpTriggerAuthType")]
pub enum HttpAuthType {
    /// The header `x-secret` equals the secret.
    Secret,
    /// The headers `webhook-id`, `webhook-timestamp` and `webhook-signature` sign the body as Standard Webhooks does.
    Hmac,
}

/// A run at each time of a schedule. `trigger` has `scheduledAt`, the time in UTC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScheduleTrigger {
    /// Five fields: minute, hour, day of month, month, day of week; such as `0 7 * * MON-FRI`.
    #[schemars(length(min = 9, max = 200))]
    pub cron: String,
    /// Time zone in which `cron` is read, such as `Europe/Berlin`; default: the account's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub timezone: Option<String>,
    /// What happens to times that passed while the service was down.
    #[serde(default)]
    pub catch_up: CatchUp,
}

/// What happens to times of a schedule that passed while the service was down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ScheduleCatchUp")]
pub enum CatchUp {
    /// They are left out.
    #[default]
    None,
    /// The last of them gets its run.
    Last,
}
