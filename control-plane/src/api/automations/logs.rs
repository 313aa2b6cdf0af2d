//! Lists the runs of an automation with their steps.

use axum::extract::State;
use domain::scopes::Resource;
use domain::{FieldError, PAGE_BYTES_MAX, json_bytes};
use store::automations::{RunFilter, list_runs};
use uuid::Uuid;
use web::{PageInfo, Path, Problem, Query, Reply};

use super::permissions::check_runs_visible;
use super::run_views::{AutomationRunStatus, AutomationRunView, masking, run_view, steps_of};
use super::views::find;
use crate::App;
use crate::call::{Call, scope};

web::list_query!(pub(super) AutomationLogsQuery {
    /// Only runs with this status.
    status: Option<AutomationRunStatus>,
    /// With the status `waiting`, or without one: only runs that wait for the next attempt of a step that failed; or, if
    /// false, only those that wait for a time or their link.
    is_retrying: Option<bool>,
});

web::list_response!(pub(super) AutomationLogListResponse { logs: AutomationRunView });

pub(super) async fn logs(
    call: Call<scope::AutomationsRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Query(query): Query<AutomationLogsQuery>,
) -> Result<Reply<AutomationLogListResponse>, Problem> {
    let (limit, after) = query.pagination().read()?;
    if query.is_retrying.is_some()
        && query.status.is_some_and(|status| status != AutomationRunStatus::Waiting)
    {
        let message = "isRetrying selects among waiting runs; leave it out, or use status=waiting";
        return Err(Problem::validation(vec![FieldError::new("isRetrying", "conflict", message)]));
    }
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Automations, id).await?;
    let automation = find(&call, &mut conn, id).await?;
    let masking = masking(&app, &automation);
    let filter =
        RunFilter { status: query.status.map(Into::into), is_retrying: query.is_retrying, after, limit };
    let mut found = list_runs(&mut conn, call.account_id, id, &filter).await?;
    check_runs_visible(&call, &mut conn, &found.rows).await?;

    // The steps of one run may be large, so they are read run by run until the page is full.
    let (mut steps, mut bytes) = (Vec::new(), 0);
    for run in &found.rows {
        if bytes > PAGE_BYTES_MAX {
            break;
        }
        let of_run = steps_of(&mut conn, call.account_id, run.id).await?;
        bytes += json_bytes(&run.trigger) + json_bytes(&of_run);
        steps.push(of_run);
    }
    found.has_more |= steps.len() < found.rows.len();
    found.rows.truncate(steps.len());
    let page = PageInfo::of(&found.rows, found.has_more);
    let rows = found.rows.into_iter().zip(steps);
    let logs = rows.map(|(run, steps)| run_view(run, steps, masking.as_ref())).collect();
    Ok(call.reply(AutomationLogListResponse { logs, page }).paginated())
}
