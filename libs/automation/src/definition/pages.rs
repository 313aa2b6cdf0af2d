//! Steps that write pages and their entries.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Adds an entry to a page. Output: the entry, `{id, pageId, data, createdAt}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateEntryStep {
    /// The page.
    pub page_id: Uuid,
    /// Data of the entry by name, at most 16 KB; templates in its texts.
    pub data: Map<String, Value>,
}

/// Removes an entry of a page. Output: `{deleted}`; false if the page had no such entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteEntryStep {
    /// The page.
    pub page_id: Uuid,
    /// Template of the entry's id, such as `{{ steps.find.items[0].id }}`.
    #[schemars(length(min = 1, max = 8192))]
    pub entry_id: String,
}

/// Changes a page, found by `pageId` or by `slug`; fields that are absent stay as they are. Values of templates in
/// `html` are escaped for HTML. Output: `{id, slug, created, updatedAt}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdatePageStep {
    /// The page; or give `slug`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_id: Option<Uuid>,
    /// Template of the page's slug; or give `pageId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 8192))]
    pub slug: Option<String>,
    /// With `slug`: its subdomain; default: the account's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subdomain_id: Option<Uuid>,
    /// With `slug`: creates the page if there is none; `title` and `html` are then required.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub upsert: bool,
    /// Template of the title, which may have 300 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    pub title: Option<String>,
    /// Template of the whole HTML document, at most 512 KB; `{{ "{{" }}` writes two braces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 524_288))]
    pub html: Option<String>,
    /// Style sheet, at most 128 KB, taken as it is written (not a template); null removes it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schemars(with = "Option<String>", length(max = 131_072))]
    pub css: Option<Option<String>>,
    /// HTML of one entry, at most 64 KB, taken as it is written: its `{{placeholders}}` are those of entries; null
    /// removes it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schemars(with = "Option<String>", length(max = 65_536))]
    pub entry_template: Option<Option<String>>,
    /// Whether visitors can see the page: true, false, or a template of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_published: Option<Value>,
    /// Template of the time at which the page is published, as an RFC 3339 timestamp; null clears it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schemars(with = "Option<String>", length(max = 8_192))]
    pub publish_at: Option<Option<String>>,
    /// Template of the page's `updatedAt` as read before: the step fails if the page has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub if_unmodified_since: Option<String>,
    /// Folder to move the page to, or to create it in; null removes it from its folder.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schemars(with = "Option<Uuid>")]
    pub folder_id: Option<Option<Uuid>>,
}

/// Reads a member that is there: null is `Some(None)`, absence `None`.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(reader: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(reader).map(Some)
}
