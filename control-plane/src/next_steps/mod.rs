//! Suggestions of what to do next: `_next` of each response to a creation, of a launch, a pipeline and the status.
//!
//! The rules are pure: they read an overview of the account and what the plan and the caller's key allow. What the account
//! has and what it can't do is never suggested. Ids and slugs are those of the account, so that the first suggestion can be
//! called as it is.

mod after;
mod context;
mod sample;
mod setup;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::HashSet;
use std::time::Duration;

use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::{Action, Resource, Scope, ScopeSet};
use store::Conn;
use store::overview::{Overview, OverviewBounds, SubdomainOverview, find_overview};
use uuid::Uuid;
use web::{NextStep, Problem};

pub(crate) use self::after::After;
use self::context::{Context, Suggestion};
use crate::App;
use crate::call::Call;

/// The most suggestions of one response.
const MAX: usize = 5;

/// The slugs that an overview for suggestions looks up.
pub(crate) const SLUGS: &[&str] = &setup::SLUGS;

/// Rules ask whether there are any; an account with many pages must not be counted at each creation.
const COUNT_MAX: i64 = 100;

/// The resource exists by now. Its response does not wait longer than this for suggestions.
const TIMEOUT: Duration = Duration::from_secs(2);

impl<S> Call<S> {
    /// Returns the suggestions of a response, with what the account has now.
    pub(crate) async fn next_steps(
        &self,
        app: &App,
        conn: &mut Conn,
        after: After<'_>,
    ) -> Result<Vec<NextStep>, Problem> {
        let bounds = OverviewBounds { count_max: Some(COUNT_MAX), slugs: SLUGS };
        let overview = find_overview(conn, self.account_id, self.restrictions(), bounds, self.now).await?;
        Ok(overview.map(|overview| self.next_steps_of(app, overview, after)).unwrap_or_default())
    }

    /// As [`Self::next_steps`], after a commit: the response is right without suggestions, too.
    pub(crate) async fn suggestions(&self, app: &App, after: After<'_>) -> Vec<NextStep> {
        let finding = async {
            let mut conn = store::acquire(&app.db).await?;
            self.next_steps(app, &mut conn, after).await
        };
        match tokio::time::timeout(TIMEOUT, finding).await {
            Ok(Ok(steps)) => steps,
            Ok(Err(problem)) => {
                tracing::warn!(detail = problem.detail(), "suggestions could not be made");
                Vec::new()
            }
            Err(_elapsed) => {
                tracing::warn!("suggestions took too long");
                Vec::new()
            }
        }
    }

    /// As [`Self::next_steps`], of an overview with the slugs [`SLUGS`].
    pub(crate) fn next_steps_of(&self, app: &App, overview: Overview, after: After<'_>) -> Vec<NextStep> {
        let overview = readable(overview, self.scopes(), after.form_id());
        let form_id = overview.form.as_ref().map(|form| form.id);
        let embed_code = form_id.map(|id| app.addresses.embed_code(id));
        let context = Context {
            overview: &overview,
            limits: self.limits(),
            scopes: self.scopes(),
            restrictions: self.restrictions(),
            embed_code: embed_code.as_deref(),
        };
        rank(&context, after)
    }
}

/// Returns the suggestions of a new trial, which has a subdomain and its key.
pub(crate) fn first_steps(subdomain: String) -> Vec<NextStep> {
    let subdomain =
        SubdomainOverview { id: Uuid::nil(), name: subdomain, has_site: false, taken_slugs: Vec::new() };
    let overview = Overview { subdomains: 1, keys: 1, subdomain: Some(subdomain), ..Overview::default() };
    let context = Context {
        overview: &overview,
        limits: Plan::Free.limits(),
        scopes: ScopeSet::FULL,
        restrictions: &Restrictions::default(),
        embed_code: None,
    };
    rank(&context, After::Trial)
}

/// Removes the resources that the key may not read; their number only prevents suggestions. `created` is the form that
/// the call created itself.
fn readable(mut overview: Overview, scopes: ScopeSet, created: Option<Uuid>) -> Overview {
    let may_read = |kind| scopes.allows(Scope::new(kind, Action::Read));
    if !may_read(Resource::Pages) {
        overview.page = None;
    }
    if !may_read(Resource::Forms) {
        overview.form = overview.form.filter(|form| Some(form.id) == created);
    }
    if !may_read(Resource::Webhooks) {
        overview.webhook = None;
        overview.linkable_webhook_id = None;
        overview.troubled_webhook_id = None;
    }
    if !may_read(Resource::Analytics) {
        overview.site = None;
    }
    if !may_read(Resource::Automations) {
        overview.automation = None;
        overview.failing_automation_id = None;
    }
    if !may_read(Resource::Domains) {
        overview.inactive_domain_id = None;
    }
    overview
}

/// Puts the suggestions in order: what follows from the call, what the account lacks, what there is to look at. A tool is
/// suggested once, and the first suggestion needs nothing from a person.
fn rank(context: &Context<'_>, after: After<'_>) -> Vec<NextStep> {
    let after::Follow { first, mut last } = after.suggestions(context);
    let lacking = setup::RULES.iter().filter_map(|rule| rule(context));
    let mut seen = HashSet::new();
    let mut found: Vec<Suggestion> =
        first.into_iter().chain(lacking).filter(|one| seen.insert(one.step.tool.clone())).collect();
    last.retain(|one| seen.insert(one.step.tool.clone()));
    last.truncate(MAX.saturating_sub(1));
    found.truncate(MAX - last.len());
    found.append(&mut last);
    let reads = setup::READS.iter().filter_map(|rule| rule(context));
    found.extend(reads.filter(|one| seen.insert(one.step.tool.clone())));
    found.truncate(MAX);
    if found.iter().all(|one| one.needs_person) && !matches!(after, After::Status) {
        found.extend(after::status(context));
    }
    let Some(first) = found.iter().position(|one| !one.needs_person) else { return Vec::new() };
    found[..=first].rotate_right(1);
    found.truncate(MAX);
    found.into_iter().map(|one| one.step).collect()
}
