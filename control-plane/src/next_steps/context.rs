//! What the rules of suggestions know: the account's resources, its plan, and what the caller may do.

use domain::answers::Answers;
use domain::plans::{Limits, UNLIMITED};
use domain::restrictions::Restrictions;
use domain::scopes::{Action, Resource, Scope, ScopeSet};
use serde_json::Value;
use store::overview::{FormOverview, Overview};
use uuid::Uuid;
use web::NextStep;

use super::sample::sample;
use super::tools::Tool;

/// A suggestion under consideration.
#[derive(Debug, Clone)]
pub(super) struct Suggestion {
    pub(super) step: NextStep,
    /// Whether its params hold a value that only a person knows. It is never the first one then.
    pub(super) needs_person: bool,
}

impl Suggestion {
    /// The suggestion, with a value that only a person knows.
    pub(super) fn for_person(mut self) -> Self {
        self.needs_person = true;
        self
    }
}

/// What the rules know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) overview: &'a Overview,
    pub(super) limits: Limits,
    pub(super) scopes: ScopeSet,
    pub(super) restrictions: &'a Restrictions,
    /// HTML that shows the newest form.
    pub(super) embed_code: Option<&'a str>,
}

impl Context<'_> {
    /// A suggestion, unless the caller lacks the tool's scope.
    pub(super) fn suggest(&self, intent: &str, tool: Tool, params: Value, hint: &str) -> Option<Suggestion> {
        let is_allowed = tool.scope.is_none_or(|scope| self.scopes.allows(scope));
        let step = || NextStep::new(intent, tool.id, params, hint);
        is_allowed.then(|| Suggestion { step: step(), needs_person: false })
    }

    /// Whether the caller has a scope beyond that of the tool.
    pub(super) fn has_scope(&self, resource: Resource, action: Action) -> bool {
        self.scopes.allows(Scope::new(resource, action))
    }

    /// Whether the caller may create resources of this kind, as far as its restrictions go.
    pub(super) fn may_add(&self, kind: Resource) -> bool {
        self.restrictions.allows_new(kind).is_ok()
    }

    /// Whether the caller may change what belongs to the whole account.
    pub(super) fn has_whole_account(&self) -> bool {
        self.restrictions.allows_account().is_ok()
    }

    /// Whether the plan has room for one more form, page, analytics site or automation, and the caller may create it.
    pub(super) fn may_add_project(&self, kind: Resource) -> bool {
        self.may_add(kind) && has_room(self.overview.usage.projects, self.limits.projects)
    }

    /// Whether the plan has room for one more webhook, and the caller may create it.
    pub(super) fn may_add_webhook(&self) -> bool {
        self.may_add(Resource::Webhooks) && has_room(self.overview.usage.webhooks, self.limits.webhooks)
    }

    /// Whether the plan has room for a custom domain, and the caller may create it.
    pub(super) fn may_add_domain(&self) -> bool {
        let has_room = has_room(self.overview.usage.domains, self.limits.custom_domains);
        has_room && self.may_add(Resource::Domains) && self.has_whole_account()
    }

    /// Whether the caller may count the visits of all pages of a subdomain.
    pub(super) fn may_count_visits(&self) -> bool {
        self.may_add_project(Resource::Analytics) && self.has_whole_account() && self.may_add(Resource::Pages)
    }

    /// The answers of a test submission of a form, if it takes one.
    pub(super) fn sample_of(&self, form: &FormOverview) -> Option<Answers> {
        let takes = form.is_open && !form.proof_of_work;
        takes.then(|| sample(&form.fields)).flatten()
    }

    /// The first of these slugs that the first subdomain does not have; else one made of an id.
    pub(super) fn free_slug(&self, wanted: &[&str], id: Uuid) -> String {
        let taken = self.overview.subdomain.as_ref().map(|one| &one.taken_slugs[..]).unwrap_or_default();
        let is_free = |slug: &&&str| !taken.iter().any(|one| one == **slug);
        match wanted.iter().find(is_free) {
            Some(slug) => (*slug).to_owned(),
            None => format!("page-{}", suffix(id)),
        }
    }
}

/// Returns the random end of an id, for names that must be unique.
pub(super) fn suffix(id: Uuid) -> String {
    let id = id.simple().to_string();
    id.get(24..).unwrap_or_default().to_owned()
}

fn has_room(used: i64, limit: i64) -> bool {
    limit == UNLIMITED || used < limit
}
