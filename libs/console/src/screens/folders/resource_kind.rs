//! The kinds of resources that a folder holds, and where the console shows one.

use percent_encoding::utf8_percent_encode;
use serde_json::{Value, json};

use crate::api_client::Answer;
use crate::api_client::operations::{ANALYTICS_LIST, AUTOMATIONS_LIST, FORMS_LIST, Operation, PAGES_LIST};
use crate::url_query::PATH_SEGMENT;

/// A kind of resource.
#[derive(Debug)]
pub(super) struct ResourceKind {
    /// The API's name of its type.
    pub(super) id: &'static str,
    pub(super) label: &'static str,
    plural: &'static str,
    /// The operation that lists resources of this kind.
    pub(super) list: &'static Operation,
    /// The member of the list's answer that has them.
    member: &'static str,
    /// The member of a resource that has its name.
    name: &'static str,
}

const fn kind(
    (id, label, plural): (&'static str, &'static str, &'static str),
    list: &'static Operation,
    (member, name): (&'static str, &'static str),
) -> ResourceKind {
    ResourceKind { id, label, plural, list, member, name }
}

pub(super) static KINDS: [ResourceKind; 4] = [
    kind(("page", "Page", "Pages"), &PAGES_LIST, ("pages", "title")),
    kind(("form", "Form", "Forms"), &FORMS_LIST, ("forms", "name")),
    kind(("analytics", "Analytics site", "Analytics sites"), &ANALYTICS_LIST, ("sites", "name")),
    kind(("automation", "Automation", "Automations"), &AUTOMATIONS_LIST, ("automations", "name")),
];

impl ResourceKind {
    /// Returns the kind of an API's name.
    pub(super) fn find(id: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.id == id)
    }

    /// Returns the listed resources that are in no folder; `None` if there are none.
    pub(super) fn without_folder(&self, list: &Answer) -> Option<Value> {
        let list = list.as_ref().ok()?;
        let is_free = |resource: &&Value| resource["folderId"].is_null();
        let view = |resource: &Value| {
            let detail = resource["slug"].as_str().map(|slug| format!("/{slug}"));
            json!({ "id": resource["id"], "name": resource[self.name], "detail": detail })
        };
        let free: Vec<_> = list[self.member].as_array()?.iter().filter(is_free).map(view).collect();
        let found = !free.is_empty();
        found.then(
            || json!({ "id": self.id, "plural": self.plural, "resources": free, "hasMore": list["hasMore"] }),
        )
    }
}

/// Returns the page of the console for a resource; `None` if it is not known. `pages` are those of the folder: a page is
/// shown at its site.
pub(super) fn path_of(resource: &Value, pages: &Answer) -> Option<String> {
    let segment = |text| utf8_percent_encode(text, PATH_SEGMENT);
    let id = resource["id"].as_str()?;
    match resource["type"].as_str()? {
        "form" => Some(format!("/console/forms/{}", segment(id))),
        "analytics" => Some(format!("/console/analytics/{}", segment(id))),
        "automation" => Some(format!("/console/automations/{}", segment(id))),
        "page" => {
            let pages = pages.as_ref().ok()?["pages"].as_array()?;
            let site = pages.iter().find(|page| page["id"] == id)?["subdomainId"].as_str()?;
            Some(format!("/console/sites/{}/pages/{}", segment(site), segment(id)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_shown_at_its_site_and_all_else_at_its_own_address() {
        let pages = Ok(json!({ "pages": [{ "id": "p", "subdomainId": "s" }] }));
        let path = |kind: &str, id: &str| path_of(&json!({ "type": kind, "id": id }), &pages);
        assert_eq!(path("page", "p").as_deref(), Some("/console/sites/s/pages/p"));
        assert_eq!(path("page", "other"), None);
        assert_eq!(path("form", "../x").as_deref(), Some("/console/forms/%2E%2E%2Fx"));
        assert_eq!(path("asset", "a"), None);
    }

    #[test]
    fn only_what_is_in_no_folder_can_be_put_in() {
        let pages = |folder: Value| {
            Ok(json!({ "pages": [{ "id": "a", "title": "A", "slug": "a", "folderId": folder }] }))
        };
        let kind = ResourceKind::find("page").unwrap();
        assert_eq!(kind.without_folder(&pages(json!("f"))), None);
        let free = kind.without_folder(&pages(Value::Null)).unwrap();
        assert_eq!(free["resources"], json!([{ "id": "a", "name": "A", "detail": "/a" }]));
    }
}
