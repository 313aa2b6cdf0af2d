//! The first argument of a handler: the authenticated and authorized caller.

mod activity;
mod commit;

use std::marker::PhantomData;
use std::sync::Arc;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{Operation, ReferenceOr, SecurityRequirement, StatusCode};
use axum::extract::FromRequestParts;
use chrono::{DateTime, Utc};
use domain::Listed;
use domain::plans::{Limits, Plan};
use domain::restrictions::Restrictions;
use domain::scopes::{Action, Resource, Scope, ScopeSet};
use domain::units;
use http::request::Parts;
use serde_json::json;
use store::Conn;
use store::accounts::Account;
use store::credentials::Caller;
use store::monthly_usage::MonthlyUsage;
use store::usage::{Counter, find_usage};
use store::{ListFilter, ListPage};
use uuid::Uuid;
use web::{
    Code, Created, Envelope, ListResponse, Meta, MetaSlot, PageInfo, Problem, Reply, RequestId, Usage,
    UsageCounter,
};

use self::activity::ActivityContext;
use crate::App;

/// A scope as a type, so that a handler's signature names the scope it requires.
pub trait RequiredScope: Send + Sync + 'static {
    /// The scope that the caller's key must have.
    const SCOPE: Scope;
}

macro_rules! scopes {
    ($($name:ident = $resource:ident $action:ident;)+) => {
        /// The scopes that handlers require.
        pub mod scope {
            use super::{Action, RequiredScope, Resource, Scope};
            $(
                #[doc = concat!("[`Resource::", stringify!($resource), "`], [`Action::", stringify!($action), "`]")]
                #[derive(Debug)]
                pub struct $name;

                impl RequiredScope for $name {
                    const SCOPE: Scope = Scope::new(Resource::$resource, Action::$action);
                }
            )+
        }
    };
}

scopes! {
    AccountCreate = Account Create;
    AccountRead = Account Read;
    AccountUpdate = Account Update;
    AnalyticsCreate = Analytics Create;
    AnalyticsDelete = Analytics Delete;
    AnalyticsRead = Analytics Read;
    AnalyticsUpdate = Analytics Update;
    AutomationsCreate = Automations Create;
    AutomationsDelete = Automations Delete;
    AutomationsRead = Automations Read;
    AutomationsUpdate = Automations Update;
    AssetsCreate = Assets Create;
    AssetsRead = Assets Read;
    AssetsDelete = Assets Delete;
    DeliveriesCreate = Deliveries Create;
    DeliveriesRead = Deliveries Read;
    DeploysCreate = Deploys Create;
    DeploysDelete = Deploys Delete;
    DeploysRead = Deploys Read;
    DeploysUpdate = Deploys Update;
    DomainsCreate = Domains Create;
    DomainsRead = Domains Read;
    DomainsUpdate = Domains Update;
    DomainsDelete = Domains Delete;
    EntriesCreate = Entries Create;
    EntriesRead = Entries Read;
    EntriesDelete = Entries Delete;
    FoldersCreate = Folders Create;
    FoldersRead = Folders Read;
    FoldersUpdate = Folders Update;
    FoldersDelete = Folders Delete;
    FormsCreate = Forms Create;
    FormsRead = Forms Read;
    FormsUpdate = Forms Update;
    FormsDelete = Forms Delete;
    KeysCreate = Keys Create;
    KeysRead = Keys Read;
    KeysUpdate = Keys Update;
    KeysDelete = Keys Delete;
    PagesCreate = Pages Create;
    PagesRead = Pages Read;
    PagesUpdate = Pages Update;
    PagesDelete = Pages Delete;
    SubdomainsCreate = Subdomains Create;
    SubdomainsRead = Subdomains Read;
    SubdomainsUpdate = Subdomains Update;
    SubmissionsDelete = Submissions Delete;
    SubmissionsRead = Submissions Read;
    SubmissionsUpdate = Submissions Update;
    WebhooksCreate = Webhooks Create;
    WebhooksRead = Webhooks Read;
    WebhooksUpdate = Webhooks Update;
    WebhooksDelete = Webhooks Delete;
    WorkflowsCreate = Workflows Create;
}

/// An authenticated call with the scope `S`.
#[derive(Debug)]
pub struct Call<S> {
    /// The caller's account, which every store function takes.
    pub account_id: Uuid,
    /// The time of the request.
    pub now: DateTime<Utc>,
    /// The caller.
    pub caller: Arc<Caller>,
    pub(crate) request_id: Arc<str>,
    /// What the log of changes says of the call.
    pub(crate) activity: ActivityContext,
    scope: PhantomData<S>,
}

impl<S> Call<S> {
    /// The account's plan.
    pub fn plan(&self) -> Plan {
        self.caller.account.plan
    }

    /// The limits of the plan.
    pub fn limits(&self) -> Limits {
        self.plan().limits()
    }

    /// The resources that the caller is restricted to.
    pub fn restrictions(&self) -> &Restrictions {
        &self.caller.restrictions
    }

    /// The caller's scopes.
    pub fn scopes(&self) -> ScopeSet {
        self.caller.scopes
    }

    /// The call with its account as it is after a change, so that `_meta` agrees with the rest of the response.
    #[must_use]
    pub fn with_account(mut self, account: Account) -> Self {
        Arc::make_mut(&mut self.caller).account = account;
        self
    }

    /// 200 with `data`.
    pub fn reply<T>(self, data: T) -> Reply<T> {
        Reply::new(Envelope::new(data, Some(meta(&self.caller, &self.request_id))))
    }

    /// 200 with one page of a list. `rows` were queried with one more than the filter's limit.
    pub fn list<R: Listed, T: ListResponse>(
        self,
        mut rows: Vec<R>,
        filter: &ListFilter,
        view: impl FnMut(R) -> T::View,
    ) -> Reply<T> {
        let page = PageInfo::truncate(&mut rows, filter.limit, filter.newest_first);
        self.reply(T::new(rows.into_iter().map(view).collect(), page)).paginated()
    }

    /// 200 with a page of a list that was bounded as it was read.
    pub fn list_page<R: Listed, T: ListResponse>(
        self,
        page: ListPage<R>,
        view: impl FnMut(R) -> T::View,
    ) -> Reply<T> {
        self.sorted_page(page, &ListFilter::default(), view)
    }

    /// As [`Self::list_page`], of a list that takes `sort`.
    pub fn sorted_page<R: Listed, T: ListResponse>(
        self,
        page: ListPage<R>,
        filter: &ListFilter,
        view: impl FnMut(R) -> T::View,
    ) -> Reply<T> {
        let info = PageInfo::sorted(&page.rows, page.has_more, filter.newest_first);
        self.reply(T::new(page.rows.into_iter().map(view).collect(), info)).paginated()
    }

    /// 201 with `data`.
    pub fn created<T>(self, data: T) -> Created<T> {
        Created(Envelope::new(data, Some(meta(&self.caller, &self.request_id))))
    }

    /// The problem of a reached plan limit, when `asked` more were requested beside the `used` ones.
    pub fn quota_exceeded(&self, what: &str, limit: i64, used: i64, asked: i64) -> Problem {
        let (plan, allowed) = (self.plan().as_str(), units::counted(limit, what));
        let detail = match (limit, used) {
            (0, _) => format!("the {plan} plan includes no {what}"),
            (1, 1) => format!("the {plan} plan allows {allowed}, and the account has one"),
            _ => format!(
                "this would need {} {what}; the {plan} plan allows {limit}, and {} are free",
                used.saturating_add(asked),
                limit.saturating_sub(used).max(0)
            ),
        };
        Problem::new(Code::QuotaExceeded, detail)
            .with("limit", json!(limit))
            .with("used", json!(used))
            .with("upgradeUrl", json!(UPGRADE_PATH))
            .hint("delete unused ones, or upgrade: GET /api/account/upgrade")
    }

    /// The problem of one more resource of a counter that has reached the plan's limit.
    pub async fn count_exceeded(&self, conn: &mut Conn, counter: Counter) -> Problem {
        let usage = match find_usage(conn, self.account_id).await {
            Ok(usage) => usage.unwrap_or(self.caller.usage),
            Err(error) => return error.into(),
        };
        let limits = self.limits();
        let (what, limit, used) = match counter {
            Counter::Projects => ("projects", limits.projects, usage.projects),
            Counter::Webhooks => ("webhooks", limits.webhooks, usage.webhooks),
            Counter::Domains => ("custom domains", limits.custom_domains, usage.domains),
            Counter::Subdomains => ("subdomains", limits.subdomains, usage.subdomains),
        };
        self.quota_exceeded(what, limit, used, 1)
    }

    /// The problem of an upload that would exceed the plan's storage.
    pub fn storage_exceeded(&self, bytes: i64) -> Problem {
        let limit = self.limits().storage_bytes;
        let used = self.caller.usage.storage_bytes;
        // The usage may be a second old, and more may have been used since.
        let free = limit.saturating_sub(used).clamp(0, (bytes - 1).max(0));
        let [needed, free] = units::sizes(bytes.unsigned_abs(), free.unsigned_abs());
        let detail = format!(
            "this would need {needed} of storage; {free} are free of the {} that the {} plan includes",
            units::size(limit.unsigned_abs()),
            self.plan().as_str()
        );
        Problem::new(Code::QuotaExceeded, detail)
            .with("limit", json!(limit))
            .with("used", json!(used))
            .with("upgradeUrl", json!(UPGRADE_PATH))
            .hint("delete unused assets, or upgrade: GET /api/account/upgrade")
    }

    /// Requires a scope beyond the operation's own, for an optional part of the request.
    pub fn require_scope(&self, resource: Resource, action: Action) -> Result<(), Problem> {
        let scope = Scope::new(resource, action);
        if self.scopes().allows(scope) { Ok(()) } else { Err(missing_scope(scope)) }
    }

    /// The problem of a feature that the plan lacks.
    pub fn plan_restricted(&self, what: &str) -> Problem {
        let detail = format!("the {} plan does not include {what}", self.plan().as_str());
        Problem::new(Code::PlanRestricted, detail)
            .with("upgradeUrl", json!(UPGRADE_PATH))
            .hint("upgrade: GET /api/account/upgrade")
    }
}

/// The path that lists the plans.
const UPGRADE_PATH: &str = "/api/account/upgrade";

impl<S: RequiredScope> FromRequestParts<App> for Call<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let now = app.clock.now();
        let caller = crate::authentication::authenticate(app, parts).await?;
        let request_id = provide_meta(parts, &caller);
        check_not_suspended(&caller)?;
        if !caller.scopes.allows(S::SCOPE) {
            return Err(missing_scope(S::SCOPE));
        }
        let activity = ActivityContext::new(parts);
        Ok(Self { account_id: caller.account.id, now, caller, request_id, activity, scope: PhantomData })
    }
}

/// Returns 403 to a suspended account.
pub(crate) fn check_not_suspended(caller: &Caller) -> Result<(), Problem> {
    match caller.account.suspended_at {
        Some(_) => Err(Problem::new(Code::Suspended, "this account is suspended; write to the operator")),
        None => Ok(()),
    }
}

/// The caller lacks a scope.
fn missing_scope(scope: Scope) -> Problem {
    let detail = format!("this API key does not have the scope `{scope}`");
    Problem::new(Code::InsufficientScope, detail).with("requiredScope", json!(scope.to_string())).hint(
        &format!(
            "use a key that has it: a key with `keys:create` and `{scope}` makes one by POST /api/keys with \
         {{\"label\": \"…\", \"scopes\": [\"{scope}\"]}}"
        ),
    )
}

/// Passes the caller's `_meta` to the frame, which adds it to a problem response. Returns the request id.
pub(crate) fn provide_meta(parts: &Parts, caller: &Arc<Caller>) -> Arc<str> {
    if let Some(MetaSlot(slot)) = parts.extensions.get() {
        let caller = Arc::clone(caller);
        // An earlier call has set the same value.
        let _already_set = slot.set(Box::new(move |request_id| meta(&caller, request_id)));
    }
    parts.extensions.get::<RequestId>().map(|id| Arc::clone(&id.0)).unwrap_or_default()
}

fn meta(caller: &Caller, request_id: &str) -> Meta {
    let plan = caller.account.plan;
    Meta {
        plan: plan.as_str(),
        claimed: caller.account.claimed_at.is_some(),
        usage: usage_of(plan, &caller.usage, &caller.monthly_usage),
        restrictions: plan.restrictions(),
        request_id: request_id.to_owned(),
    }
}

/// The usage of a plan's limits.
pub fn usage_of(plan: Plan, usage: &store::usage::Usage, months: &MonthlyUsage) -> Usage {
    let limits = plan.limits();
    let used = |used: i64, limit: i64| UsageCounter { used, limit };
    Usage {
        projects: used(usage.projects, limits.projects),
        webhooks: used(usage.webhooks, limits.webhooks),
        domains: used(usage.domains, limits.custom_domains),
        subdomains: used(usage.subdomains, limits.subdomains),
        storage_bytes: used(usage.storage_bytes, limits.storage_bytes),
        events: used(months.events, limits.events_per_month),
        automation_runs: used(months.automation_runs, limits.automation_runs_per_month),
    }
}

impl<S: RequiredScope> OperationInput for Call<S> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        let rule: SecurityRequirement =
            [("apiKey".to_owned(), vec![S::SCOPE.to_string()])].into_iter().collect();
        operation.security.push(rule);
        let responses = operation.responses.get_or_insert_default();
        for (status, description) in
            [(401, "No valid API key."), (403, "The key or the plan does not allow this.")]
        {
            let response = Problem::described(ctx, description);
            responses.responses.insert(StatusCode::Code(status), ReferenceOr::Item(response));
        }
    }
}
