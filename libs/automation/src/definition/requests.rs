//! Steps that call other servers, and the one that answers the trigger's request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Sends an HTTP request. Output: `{status, headers, body}`; `body` is parsed if it is JSON, a text if it is one, else
/// base64, and `isBase64` is true then. It may have at most 1 MiB. A status from 400 on is a failure; 408, 425, 429 and
/// from 500 on it is retried, if `retry` says so. Redirects are not followed. At most 100 requests in one run, retries
/// included. The header `Idempotency-Key` is the same in every attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FetchStep {
    /// Method.
    #[serde(default)]
    pub method: FetchMethod,
    /// URL, http or https. Templates are escaped for URLs, except one at the beginning that is the whole address.
    #[schemars(length(min = 1, max = 8192))]
    pub url: String,
    /// Headers; templates by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "std::collections::BTreeMap<String, String>", extend("maxProperties" = 50))]
    pub headers: Map<String, Value>,
    /// Body: an object or a list is sent as JSON, with templates in its texts; a text is sent as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

/// Method of a `fetch` step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum FetchMethod {
    /// GET.
    #[default]
    Get,
    /// HEAD.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl FetchMethod {
    /// Returns the method as it stands in a request, such as `POST`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Answers the request of an http trigger, within 25 seconds of it; later or without this step the answer is 202 with
/// the run's id. The run goes on after it; a second `respond` in the run is a failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RespondStep {
    /// Status code.
    #[serde(default = "ok", skip_serializing_if = "is_ok")]
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// Headers; templates by name. Allowed: `Content-Type`, `Cache-Control`, `Retry-After`, `Location` (with a status
    /// 3xx) and `X-…`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "std::collections::BTreeMap<String, String>", extend("maxProperties" = 50))]
    pub headers: Map<String, Value>,
    /// Body: an object or a list is sent as JSON; a text as plain text, unless `Content-Type` says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

fn ok() -> u16 {
    200
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_ok(status: &u16) -> bool {
    *status == ok()
}

/// Sends a payload to a webhook of the account: signed, retried and logged as its other deliveries. Output:
/// `{deliveryId}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendWebhookStep {
    /// The webhook.
    pub webhook_id: Uuid,
    /// The payload's members; templates in its texts.
    pub payload: Map<String, Value>,
}
