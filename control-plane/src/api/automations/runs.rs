//! Reads and cancels runs. The specification shows no endpoints for it; these are extensions.

use axum::extract::State;
use contract::Signal;
use domain::scopes::Resource;
use store::Conn;
use store::automations::{Automation, Run, cancel_run, find_run};
use uuid::Uuid;
use web::{Code, Path, Problem, Reply};

use super::permissions::check_runs_visible;
use super::run_views::{AutomationRunView, masking, run_view, steps_of};
use super::views::find;
use crate::App;
use crate::call::{Call, scope};

pub(super) async fn run(
    call: Call<scope::AutomationsRead>,
    State(app): State<App>,
    Path((id, run_id)): Path<(Uuid, Uuid)>,
) -> Result<Reply<AutomationRunView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let (automation, run) = find_visible(&call, &mut conn, id, run_id).await?;
    let steps = steps_of(&mut conn, call.account_id, run_id).await?;
    let view = run_view(run, steps, masking(&app, &automation).as_ref());
    Ok(call.reply(view))
}

pub(super) async fn cancel(
    call: Call<scope::AutomationsUpdate>,
    State(app): State<App>,
    Path((id, run_id)): Path<(Uuid, Uuid)>,
) -> Result<Reply<AutomationRunView>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    let (automation, found) = find_visible(&call, &mut tx, id, run_id).await?;
    if !cancel_run(&mut tx, call.account_id, id, run_id, call.now).await? {
        let detail = format!("this run has ended already, with the status {}", found.status.as_str());
        return Err(Problem::new(Code::Conflict, detail));
    }
    let (_, run) = find_visible(&call, &mut tx, id, run_id).await?;
    let steps = steps_of(&mut tx, call.account_id, run_id).await?;
    call.commit_and_send(&app, tx, vec![Signal::RunsAnswered { run_ids: vec![run_id] }]).await?;
    Ok(call.reply(run_view(run, steps, masking(&app, &automation).as_ref())))
}

/// Returns a run with its automation, if the caller may see both.
pub(super) async fn find_visible<S>(
    call: &Call<S>,
    conn: &mut Conn,
    id: Uuid,
    run_id: Uuid,
) -> Result<(Automation, Run), Problem> {
    call.check_id(conn, Resource::Automations, id).await?;
    let automation = find(call, conn, id).await?;
    let run = find_run(conn, call.account_id, id, run_id).await?;
    let run = run.ok_or_else(|| Problem::not_found("run"))?;
    check_runs_visible(call, conn, [&run]).await?;
    Ok((automation, run))
}
