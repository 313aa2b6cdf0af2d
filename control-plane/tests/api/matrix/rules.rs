//! The expected response of each cell, by a few rules. Every exception states its reason.

use std::fmt;

use domain::scopes::{Action, Resource, Scope};
use web::Endpoint;

use super::case::{CallSubject, Case};
use super::credentials::Column::{self, FolderInside, FolderOutside, IdsWith, IdsWithout, OtherAccount};

/// A response: its status and problem code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResponseSummary {
    pub(super) status: u16,
    pub(super) code: Option<String>,
}

/// The item was rejected, the call succeeded.
pub(super) const ITEM_REJECTED: &str = "item rejected";

impl ResponseSummary {
    fn rejected(status: u16, code: &str) -> Option<Self> {
        Some(Self { status, code: Some(code.to_owned()) })
    }

    /// Whether the response forbids side effects.
    pub(super) fn is_rejection(&self) -> bool {
        self.code.is_some()
    }
}

impl fmt::Display for ResponseSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.code.as_deref() {
            Some("insufficient_scope") => " scope",
            Some("folder_forbidden") => " folder",
            Some("key_expired") => " expired",
            Some(ITEM_REJECTED) => " but not it",
            Some("unauthenticated" | "not_found") | None => "",
            Some(other) => return write!(f, "{} {other}", self.status),
        };
        write!(f, "{}{word}", self.status)
    }
}

/// A deviation from the rules, with its reason.
struct Exception {
    operation: &'static str,
    position: &'static str,
    columns: &'static [Column],
    response: Option<(u16, Option<&'static str>)>,
    reason: &'static str,
}

const fn folder_key(operation: &'static str, position: &'static str, reason: &'static str) -> Exception {
    let (columns, response) = (&[FolderInside], Some((403, Some("folder_forbidden"))));
    Exception { operation, position, columns, response, reason }
}

const SITE: &str = "a deploy concerns a whole site";

const fn whole_site(operation: &'static str, position: &'static str) -> Exception {
    let (columns, response) = (&[FolderInside, FolderOutside], Some((403, Some("folder_forbidden"))));
    Exception { operation, position, columns, response, reason: SITE }
}

const NAME: &str = "a name belongs to the whole account";
const OUT: &str = "a resource without a folder is outside the key's folder";
const MORE: &str = "it would cover resources outside";

const fn no_listed_page(position: &'static str) -> Exception {
    let (columns, response) = (&[IdsWith], Some((403, Some("insufficient_scope"))));
    let reason = "the archived entries belong to another page, which is not among the ids";
    Exception { operation: "entries.restore", position, columns, response, reason }
}

const ACCOUNT_UPDATE: Column = Column::OneScope(Scope::new(Resource::Account, Action::Update));
const PAGES_CREATE: Column = Column::OneScope(Scope::new(Resource::Pages, Action::Create));
const FORMS_CREATE: Column = Column::OneScope(Scope::new(Resource::Forms, Action::Create));
const AUTOMATIONS_CREATE: Column = Column::OneScope(Scope::new(Resource::Automations, Action::Create));
const AUTOMATIONS_UPDATE: Column = Column::OneScope(Scope::new(Resource::Automations, Action::Update));
const FORMS_UPDATE: Column = Column::OneScope(Scope::new(Resource::Forms, Action::Update));

const fn needs_more(
    operation: &'static str,
    position: &'static str,
    columns: &'static [Column],
) -> Exception {
    let reason = "an optional part of the body requires another scope";
    Exception { operation, position, columns, response: Some((403, Some("insufficient_scope"))), reason }
}

const ACCOUNT_READ: Column = Column::OneScope(Scope::new(Resource::Account, Action::Read));

const fn sessions_only(operation: &'static str, columns: &'static [Column]) -> Exception {
    let reason = "a key has no sessions, and the person has no session with this id";
    Exception { operation, position: "", columns, response: Some((404, Some("not_found"))), reason }
}

const fn no_restricted_key(operation: &'static str) -> Exception {
    let (columns, response) = (&[FolderInside], Some((403, Some("insufficient_scope"))));
    let reason = "the log names what a restricted key may not see";
    Exception { operation, position: "", columns, response, reason }
}

const EXCEPTIONS: &[Exception] = &[
    no_restricted_key("activity.list"),
    no_restricted_key("activity.export"),
    sessions_only("sessions.current", &[ACCOUNT_READ, FolderInside]),
    sessions_only("sessions.delete", &[ACCOUNT_UPDATE, FolderInside, Column::Session]),
    needs_more("forms.create", "body.webhookIds", &[FORMS_CREATE]),
    needs_more("forms.create", "body.autoEntryPageId", &[FORMS_CREATE]),
    needs_more("forms.update", "body.webhookIds", &[FORMS_UPDATE]),
    needs_more("forms.update", "body.autoEntryPageId", &[FORMS_UPDATE]),
    needs_more("launch.create", "", &[PAGES_CREATE]),
    needs_more("launch.create", "no subdomainId", &[PAGES_CREATE]),
    needs_more("launch.create", "body.subdomainId", &[PAGES_CREATE]),
    needs_more("launch.create", "body.subdomain", &[PAGES_CREATE]),
    needs_more("launch.create", "with analytics", &[PAGES_CREATE]),
    folder_key("launch.create", "body.subdomain", NAME),
    folder_key("launch.create", "with analytics", MORE),
    needs_more("pipeline.create", "body.notify", &[FORMS_CREATE]),
    needs_more("pipeline.create", "body.autoEntryPageId", &[FORMS_CREATE]),
    needs_more("automations.create", "body.steps", &[AUTOMATIONS_CREATE]),
    needs_more("automations.create", "body.trigger", &[AUTOMATIONS_CREATE]),
    needs_more("automations.update", "body.steps", &[AUTOMATIONS_UPDATE]),
    folder_key("automations.update", "folderId null", OUT),
    folder_key("forms.update", "folderId null", OUT),
    no_listed_page(""),
    no_listed_page("body.archiveId"),
    folder_key("account.update", "", "settings belong to the whole account"),
    folder_key("account.claim_link", "", "a claim hands over the whole account"),
    Exception {
        operation: "account.claim_link",
        position: "",
        columns: &[ACCOUNT_UPDATE, Column::Session],
        response: Some((403, Some("insufficient_scope"))),
        reason: "only the trial's own key may hand over the account",
    },
    folder_key("account.upgrade", "", "the plan belongs to the whole account"),
    folder_key("subdomains.rename", "", NAME),
    folder_key("subdomains.create", "", NAME),
    folder_key("folders.create", "", "it would be outside"),
    folder_key("folders.delete", "", OUT),
    folder_key("folders.ungroup", "", OUT),
    folder_key("folders.ungroup", "body.resources", OUT),
    folder_key("pages.update", "folderId null", OUT),
    folder_key("assets.create", "", "without a page it has no folder"),
    folder_key("deploys.create", "", SITE),
    folder_key("deploys.list", "", SITE),
    folder_key("deploys.process", "no subdomainId", SITE),
    folder_key("deploys.process", "of new pages", SITE),
    whole_site("deploys.read", ""),
    whole_site("deploys.process", "body.subdomainId"),
    whole_site("deploys.publish", ""),
    whole_site("deploys.delete", ""),
    whole_site("deploys.rollback", ""),
    folder_key("webhooks.create", "no formIds", MORE),
    folder_key("webhooks.create", "formIds []", "without a form it has no folder"),
    folder_key("analytics.create", "of all its pages", MORE),
    Exception {
        operation: "folders.ungroup",
        position: "body.resources",
        columns: &[FolderOutside],
        response: Some((403, Some("folder_forbidden"))),
        reason: OUT,
    },
    Exception {
        operation: "analytics.create",
        position: "body.subdomainId",
        columns: &[FolderInside, FolderOutside],
        response: Some((403, Some("folder_forbidden"))),
        reason: MORE,
    },
    Exception {
        operation: "keys.create",
        position: "body.folderId",
        columns: &[FolderOutside],
        response: Some((403, Some("insufficient_scope"))),
        reason: "a key for another folder is wider than its creator",
    },
];

/// The expected response, or `None` if the row has no id that could be outside.
pub(super) fn expected(endpoint: &Endpoint, case: &Case, column: Column) -> Option<ResponseSummary> {
    let is_create = case.operation.ends_with(".create");
    let success = Some(ResponseSummary { status: if is_create { 201 } else { 200 }, code: None });
    let Some(scopes) = &endpoint.scopes else { return success };
    let applies = |one: &&Exception| {
        (one.operation, one.position) == (case.operation, case.position) && one.columns.contains(&column)
    };
    if let Some(exception) = EXCEPTIONS.iter().find(applies) {
        return exception
            .response
            .map(|(status, code)| ResponseSummary { status, code: code.map(str::to_owned) });
    }
    match column {
        Column::NoKey | Column::Garbage | Column::Revoked => {
            return ResponseSummary::rejected(401, "unauthenticated");
        }
        Column::Expired => return ResponseSummary::rejected(401, "key_expired"),
        Column::SessionForeign if endpoint.method != "GET" => {
            return ResponseSummary::rejected(403, "foreign_origin");
        }
        Column::Session | Column::SessionForeign => return success,
        Column::OneScope(scope) if *scopes == [scope.to_string()] => return success,
        Column::OneScope(_) => return ResponseSummary::rejected(403, "insufficient_scope"),
        _ => {}
    }
    by_restrictions(case, column, success)
}

fn by_restrictions(case: &Case, column: Column, success: Option<ResponseSummary>) -> Option<ResponseSummary> {
    use CallSubject::{Account, Creates, First, Lists, Names, NamesAmongOthers, Nothing};
    let item_rejected = ResponseSummary::rejected(200, ITEM_REJECTED);
    // Domains belong to the whole account.
    if case.operation.starts_with("domains.") && column == FolderInside {
        return ResponseSummary::rejected(403, "folder_forbidden");
    }
    match (column, case.subject) {
        (_, Nothing) => success,
        (FolderInside, _) => success,
        (FolderOutside, Names(Resource::Subdomains)) if !case.operation.starts_with("domains.") => success,
        (FolderOutside, Names(Resource::Keys)) => ResponseSummary::rejected(403, "insufficient_scope"),
        (FolderOutside, Names(_)) => ResponseSummary::rejected(403, "folder_forbidden"),
        (IdsWith, Creates(_)) | (IdsWithout, Names(_) | First(_)) => {
            ResponseSummary::rejected(403, "insufficient_scope")
        }
        (IdsWith, Names(_) | NamesAmongOthers(_) | First(_)) => success,
        (OtherAccount, Names(_)) => ResponseSummary::rejected(404, "not_found"),
        (FolderOutside | IdsWithout | OtherAccount, NamesAmongOthers(_)) => item_rejected,
        (IdsWith | IdsWithout | OtherAccount, Lists(_)) => success,
        (FolderOutside | IdsWithout | OtherAccount, Account | First(_) | Creates(_) | Lists(_))
        | (IdsWith, Account) => None,
        // Handled above, independent of the resource.
        _ => success,
    }
}

/// Whether a list contains the resources inside and outside the restrictions.
pub(super) fn shows(kind: Resource, column: Column) -> (bool, bool) {
    match column {
        // Subdomains have no folder; a key sees those of its pages.
        FolderInside if kind == Resource::Subdomains => (true, true),
        FolderInside | IdsWith => (true, false),
        FolderOutside | IdsWithout => (false, true),
        OtherAccount => (false, false),
        _ => (true, true),
    }
}

/// Exceptions without a matching row.
pub(super) fn exceptions_without_case(cases: &[Case]) -> Vec<String> {
    let has_no_case = |one: &&Exception| {
        !cases.iter().any(|case| (case.operation, case.position) == (one.operation, one.position))
    };
    let name = |one: &Exception| format!("{} {} ({})", one.operation, one.position, one.reason);
    EXCEPTIONS.iter().filter(has_no_case).map(name).collect()
}
