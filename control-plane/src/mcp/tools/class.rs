//! What a tool may do: read, write or delete, and which scopes it needs.

use domain::scopes::ScopeSet;
use http::Method;
use rmcp::model::ToolAnnotations;

use crate::catalog::Operation;

/// What an operation does to the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mcp) enum Class {
    Read,
    Write,
    Delete,
}

impl Class {
    /// All classes.
    pub(in crate::mcp) const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Delete];

    /// Returns the class of an operation. A query that is sent with POST, such as a funnel, requires a scope to read.
    pub(in crate::mcp) fn of(operation: &Operation) -> Self {
        let scopes = operation.scopes.as_deref().unwrap_or_default();
        let only = |action: &str| !scopes.is_empty() && scopes.iter().all(|scope| scope.ends_with(action));
        if operation.method == Method::GET || only(":read") {
            Self::Read
        } else if operation.method == Method::DELETE || only(":delete") {
            Self::Delete
        } else {
            Self::Write
        }
    }

    /// Returns the tool that calls any operation of this class.
    pub(in crate::mcp) fn tool(self) -> &'static str {
        match self {
            Self::Read => "call_api_read",
            Self::Write => "call_api_write",
            Self::Delete => "call_api_delete",
        }
    }

    /// Returns the hints of a tool. Nothing but the account is touched, except by the operations that call a user's address.
    pub(super) fn annotations(self, is_destructive: bool, is_idempotent: bool) -> ToolAnnotations {
        ToolAnnotations::from_raw(
            None,
            Some(self == Self::Read),
            Some(is_destructive),
            Some(is_idempotent || self == Self::Read),
            None,
        )
    }
}

/// Operations that create, but also write over what has the same slug.
const OVERWRITING: [&str; 2] = ["launch.create", "pages.batch"];

/// Returns whether an operation overwrites, revokes or deletes something. Clients may run all others without asking.
pub(super) fn is_destructive(operation: &Operation) -> bool {
    let scopes = operation.scopes.as_deref().unwrap_or_default();
    let is_creation = operation.method == Method::POST
        && scopes.iter().all(|scope| scope.ends_with(":create"))
        && !OVERWRITING.contains(&operation.id.as_str());
    Class::of(operation) != Class::Read && !is_creation
}

/// Returns whether the same call again changes nothing more.
pub(super) fn is_idempotent(operation: &Operation) -> bool {
    operation.method != Method::POST || operation.id == "launch.create"
}

/// Returns the scopes of an operation; `None` for a public one. What can't be read takes every scope.
pub(super) fn required_scopes(operation: &Operation) -> Option<ScopeSet> {
    let scopes = operation.scopes.as_ref()?;
    Some(ScopeSet::parse(scopes.iter().map(String::as_str)).unwrap_or(ScopeSet::FULL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn only_reads_and_pure_creations_are_harmless() {
        let catalog = Catalog::new(&crate::api::document());
        let is_harmless_write = |operation: &&Operation| {
            operation.served_here && Class::of(operation) != Class::Read && !is_destructive(operation)
        };
        let mut harmless: Vec<&str> =
            catalog.operations().iter().filter(is_harmless_write).map(|one| one.id.as_str()).collect();
        harmless.sort_unstable();
        let creations = [
            "analytics.create",
            "assets.create",
            "automations.create",
            "deliveries.retry",
            "deliveries.retry_failed",
            "deploys.create",
            "domains.create",
            "entries.create",
            "entries.restore",
            "folders.create",
            "forms.create",
            "help.create",
            "keys.create",
            "pages.create",
            "pipeline.create",
            "subdomains.create",
            "trial.create",
            "webhooks.create",
            "webhooks.test",
            "workflows.create",
        ];
        assert_eq!(harmless, creations);
        for id in ["subdomains.rename", "keys.rotate", "launch.create", "pages.update", "forms.delete"] {
            assert!(catalog.find(id).is_some_and(is_destructive), "{id}");
        }
    }
}
