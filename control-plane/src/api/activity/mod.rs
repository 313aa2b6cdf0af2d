//! The log of changes: who changed what, and when. Only for callers who may see the whole account, because it names
//! everything in it.

mod access;
mod export;

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::FieldError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::activity::{Activity, ActivityFilter, list_activity};
use uuid::Uuid;
use web::{PageInfo, Problem, Query, Reply};

use self::access::check_unrestricted;
use self::export::export;
use crate::App;
use crate::api::time_range::TimeRange;
use crate::call::{Call, scope};

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("activity")
        .get("/api/activity", list, "List the changes in the account, newest first")
        .get("/api/activity/export", export, "Export the changes in the account as CSV")
        .extension()
}

/// The kind of author of a change.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ActivityActorType {
    Person,
    Key,
    Automation,
    Operator,
}

impl ActivityActorType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Key => "key",
            Self::Automation => "automation",
            Self::Operator => "operator",
        }
    }
}

web::list_query!(ActivityQuery {
    /// Only changes by authors of this kind.
    actor_type: Option<ActivityActorType>,
    /// Only changes by this operation, such as `forms.update`.
    operation: Option<String>,
    /// Only changes of this resource.
    resource_id: Option<Uuid>,
    /// Only changes from this day (UTC) or instant on.
    #[schemars(length(min = 10), extend("format" = "day-or-instant"))]
    from: Option<String>,
    /// Only changes up to the end of this day (UTC), or before this instant.
    #[schemars(length(min = 10), extend("format" = "day-or-instant"))]
    to: Option<String>,
});

#[derive(Debug, Serialize, JsonSchema)]
struct ActivityListResponse {
    /// The changes on this page of the list.
    activity: Vec<ActivityView>,
    #[serde(flatten)]
    page: PageInfo,
}

/// A change. The log keeps it for 90 days, and for a year on the Scale plan.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ActivityView {
    id: Uuid,
    /// When it was made.
    at: DateTime<Utc>,
    /// Its author.
    actor: ActivityActorView,
    /// The operation, such as `forms.update`; of an operator the command, such as `admin plan`.
    operation: String,
    /// What was changed; null for the account itself and for many resources at once.
    resource: Option<ActivityResourceView>,
    /// The `X-Request-Id` of the call; null for automations and operators.
    request_id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ActivityActorView {
    /// `person` in a browser, `key`, `automation` or `operator` of this service.
    #[serde(rename = "type")]
    kind: String,
    /// Id of the person, key or automation, also if it is gone; null for an operator.
    id: Option<Uuid>,
    /// Its name at that time.
    name: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ActivityResourceView {
    /// Type of the resource, such as `forms`.
    #[serde(rename = "type")]
    kind: String,
    /// Id of the resource, also if it is gone.
    id: Uuid,
    /// Its name at that time.
    name: String,
}

async fn list(
    call: Call<scope::AccountRead>,
    State(app): State<App>,
    Query(query): Query<ActivityQuery>,
) -> Result<Reply<ActivityListResponse>, Problem> {
    check_unrestricted(&call)?;
    let (limit, after) = query.pagination().read()?;
    let mut errors: Vec<FieldError> = Vec::new();
    let TimeRange { from, until } = TimeRange::read(query.from, query.to, &mut errors);
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let filter = ActivityFilter {
        actor_type: query.actor_type.map(|kind| kind.as_str().to_owned()),
        operation: query.operation,
        resource_id: query.resource_id,
        from,
        until,
        after,
        limit,
    };
    let mut conn = store::acquire(&app.db).await?;
    let mut rows = list_activity(&mut conn, call.account_id, &filter).await?;
    let page = PageInfo::truncate(&mut rows, limit, false);
    let activity = rows.into_iter().map(ActivityView::from).collect();
    let reply = call.reply(ActivityListResponse { activity, page: page.clone() });
    Ok(reply.linked(&page))
}

impl From<Activity> for ActivityView {
    fn from(row: Activity) -> Self {
        let resource = match (row.resource_type, row.resource_id) {
            (Some(kind), Some(id)) => {
                Some(ActivityResourceView { kind, id, name: row.resource_name.unwrap_or_default() })
            }
            _ => None,
        };
        Self {
            id: row.id,
            at: row.created_at,
            actor: ActivityActorView { kind: row.actor_type, id: row.actor_id, name: row.actor_name },
            operation: row.operation,
            resource,
            request_id: row.request_id,
        }
    }
}
