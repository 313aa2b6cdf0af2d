//! The first argument of a handler: who calls, and that they may.

use std::marker::PhantomData;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{Operation, ReferenceOr, SecurityRequirement, StatusCode};
use axum::extract::FromRequestParts;
use chrono::{DateTime, Utc};
use domain::plans::{Limits, Plan};
use domain::scopes::{Action, Resource, Scope};
use http::request::Parts;
use serde_json::json;
use store::keys::Caller;
use uuid::Uuid;
use web::{Code, Created, Envelope, Meta, MetaSlot, MetaUsage, Problem, Reply, RequestId, Used};

use crate::App;

/// A scope as a type, so that it can stand in a signature.
pub trait Needs: Send + Sync + 'static {
    /// What the caller's key must allow.
    const SCOPE: Scope;
}

macro_rules! scopes {
    ($($name:ident = $resource:ident $action:ident;)+) => {
        /// The scopes handlers ask for.
        pub mod scope {
            use super::{Action, Needs, Resource, Scope};
            $(
                #[doc = concat!("[`Resource::", stringify!($resource), "`], [`Action::", stringify!($action), "`]")]
                #[derive(Debug)]
                pub struct $name;

                impl Needs for $name {
                    const SCOPE: Scope = Scope::new(Resource::$resource, Action::$action);
                }
            )+
        }
    };
}

scopes! {
    AccountRead = Account Read;
    AnalyticsCreate = Analytics Create;
    AnalyticsRead = Analytics Read;
    DeliveriesRead = Deliveries Read;
    FormsCreate = Forms Create;
    FormsRead = Forms Read;
    FormsDelete = Forms Delete;
    PagesCreate = Pages Create;
    PagesRead = Pages Read;
    PagesUpdate = Pages Update;
    PagesDelete = Pages Delete;
    SubmissionsRead = Submissions Read;
    WebhooksCreate = Webhooks Create;
    WebhooksRead = Webhooks Read;
}

/// An authenticated call whose key allows `S`.
#[derive(Debug)]
pub struct Call<S> {
    /// Whose data this call may touch: the first thing every store function is given.
    pub account_id: Uuid,
    /// What the account pays for.
    pub plan: Plan,
    /// When the call came in.
    pub now: DateTime<Utc>,
    meta: Meta,
    scope: PhantomData<S>,
}

impl<S> Call<S> {
    /// What the plan allows.
    pub fn limits(&self) -> Limits {
        self.plan.limits()
    }

    /// 200 with `data`.
    pub fn reply<T>(self, data: T) -> Reply<T> {
        Reply(Envelope::new(data, Some(self.meta)))
    }

    /// 201 with `data`.
    pub fn created<T>(self, data: T) -> Created<T> {
        Created(Envelope::new(data, Some(self.meta)))
    }

    /// The plan's limit is reached: nothing was created.
    pub fn quota_exceeded(&self, what: &str, limit: i64) -> Problem {
        let detail = format!("the {} plan allows {limit} {what}, and they are all used", self.plan.word());
        Problem::new(Code::QuotaExceeded, detail)
            .with("limit", json!(limit))
            .hint("delete what is no longer needed, or upgrade: GET /api/account/upgrade")
    }
}

impl<S: Needs> FromRequestParts<App> for Call<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let now = app.clock.now();
        let key = bearer(parts)?;
        let caller = app.callers.find(key).await?.ok_or_else(|| {
            Problem::new(
                Code::Unauthenticated,
                "this API key is not valid: mistyped, revoked, or its trial has ended",
            )
            .hint("get a new one with POST /api/trial")
        })?;
        if caller.expires_at.is_some_and(|at| at <= now) {
            return Err(Problem::new(Code::KeyExpired, "this API key has expired; make or rotate one"));
        }
        let meta = meta(&caller, parts);
        if let Some(MetaSlot(slot)) = parts.extensions.get() {
            // Set once per request: the frame reads it should the call end in a problem.
            let _ = slot.set(meta.clone());
        }
        remember_use(app, &caller, now);
        if caller.suspended {
            return Err(Problem::new(Code::Suspended, "this account is suspended; write to the operator"));
        }
        if !caller.scopes.allows(S::SCOPE) {
            let detail = format!("this API key does not have the scope `{}`", S::SCOPE);
            return Err(Problem::new(Code::InsufficientScope, detail)
                .with("requiredScope", json!(S::SCOPE.to_string())));
        }
        let Caller { account_id, plan, .. } = caller;
        Ok(Self { account_id, plan, now, meta, scope: PhantomData })
    }
}

/// The key a request carries.
pub(crate) fn bearer(parts: &Parts) -> Result<&str, Problem> {
    let header = parts.headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (scheme, key) = header.split_once(' ').unwrap_or((header, ""));
    if !scheme.eq_ignore_ascii_case("bearer") || key.trim().is_empty() {
        let detail = "this call needs an API key in its `Authorization: Bearer <key>` header";
        return Err(Problem::new(Code::Unauthenticated, detail).hint("get one with POST /api/trial"));
    }
    Ok(key.trim())
}

/// What the caller's answers carry beside their data.
pub(crate) fn meta(caller: &Caller, parts: &Parts) -> Meta {
    let limits = caller.plan.limits();
    let used = |used: i64, limit: i64| Used { used, limit };
    Meta {
        plan: caller.plan.word().to_owned(),
        claimed: caller.claimed,
        usage: MetaUsage {
            projects: used(caller.usage.projects, limits.projects),
            webhooks: used(caller.usage.webhooks, limits.webhooks),
            domains: used(caller.usage.domains, limits.custom_domains),
            subdomains: used(caller.usage.subdomains, limits.subdomains),
            storage_bytes: used(caller.usage.storage_bytes, limits.storage_bytes),
        },
        restrictions: caller.plan.restrictions().iter().map(ToString::to_string).collect(),
        request_id: parts.extensions.get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default(),
    }
}

/// Notes that a key was used, at most once a minute and beside the call.
fn remember_use(app: &App, caller: &Caller, now: DateTime<Utc>) {
    let fresh = |at: DateTime<Utc>| now - at < chrono::TimeDelta::minutes(1);
    if caller.last_used_at.is_some_and(fresh) {
        return;
    }
    let (db, key_id) = (app.db.clone(), caller.key_id);
    tokio::spawn(async move {
        let noted = async {
            let mut conn = store::acquire(&db).await?;
            store::keys::update_last_used(&mut conn, key_id, now).await
        };
        if let Err(error) = noted.await {
            tracing::warn!(%error, "a key's last use could not be noted");
        }
    });
}

impl<S: Needs> OperationInput for Call<S> {
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
