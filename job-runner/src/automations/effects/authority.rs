//! Checks at each step what the key that saved the automation may do: its scopes and its restrictions to a folder or to
//! listed resources. The resources are checked as they are now; they may have been moved since the automation was saved.

use automation::execution::Failure;
use domain::restrictions::RestrictionError;
use domain::scopes::{Resource, Scope};
use store::Conn;
use store::automations::Authority;
use uuid::Uuid;

use super::abort::Abort;

/// Checks that the authority has a scope.
pub(super) fn check_scope(authority: &Authority, scope: Scope) -> Result<(), Failure> {
    if authority.scopes.allows(scope) {
        return Ok(());
    }
    Err(Failure::permanent(format!(
        "the key that saved this automation may not do this: it lacks the scope `{scope}`; save the automation with a key \
         that has it"
    )))
}

/// Checks that the authority has a scope and covers a resource. Whether the resource exists is checked only if the
/// authority is restricted.
pub(super) async fn check(
    conn: &mut Conn,
    account_id: Uuid,
    authority: &Authority,
    scope: Scope,
    (kind, id): (Resource, Uuid),
) -> Result<(), Abort> {
    check_scope(authority, scope)?;
    let restrictions = &authority.restrictions;
    if restrictions.folder_id.is_none() && restrictions.ids_of(kind).is_none() {
        return Ok(());
    }
    let found = store::resources::list_resource_folders(conn, account_id, kind, &[id]).await?;
    let found = found.first().ok_or_else(|| missing(kind, id))?;
    Ok(restrictions.allows(kind, id, found.folder_id).map_err(|reason| forbidden(reason, kind))?)
}

/// Checks that the authority may create resources of this kind.
pub(super) fn check_new(authority: &Authority, scope: Scope) -> Result<(), Failure> {
    check_scope(authority, scope)?;
    authority.restrictions.allows_new(scope.resource).map_err(|reason| forbidden(reason, scope.resource))
}

/// Checks that the authority may take a resource out of its folder.
pub(super) fn check_account(authority: &Authority, kind: Resource) -> Result<(), Failure> {
    authority.restrictions.allows_account().map_err(|reason| forbidden(reason, kind))
}

/// Returns the failure of a resource that the account does not have.
pub(super) fn missing(kind: Resource, id: Uuid) -> Failure {
    Failure::permanent(format!("there is no {} {id}", noun(kind)))
}

fn forbidden(reason: RestrictionError, kind: Resource) -> Failure {
    let why = match reason {
        RestrictionError::Folder => "restricted to one folder, and this is outside it".to_owned(),
        RestrictionError::Ids => {
            format!("restricted to certain {}, and this is not one of them", kind.as_str())
        }
    };
    Failure::permanent(format!(
        "the key that saved this automation may not use this {}: it is {why}; save the automation with another key",
        noun(kind)
    ))
}

fn noun(kind: Resource) -> &'static str {
    match kind {
        Resource::Analytics => "analytics site",
        other => other.as_str().trim_end_matches('s'),
    }
}
