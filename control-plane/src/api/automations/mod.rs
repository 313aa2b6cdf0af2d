//! Automations: their definitions, their runs with logs, and the public URLs that start and resume runs.

mod create;
mod definition;
mod depth;
mod logs;
mod permissions;
pub(super) mod public;
mod replay;
mod requests;
mod run_views;
mod runs;
mod schedules;
mod test_run;
mod update;
mod views;

use axum::extract::State;
use domain::scopes::Resource;
use store::automations::{LockedRuns, begin_deletion, delete_automation, delete_automation_runs};
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Deletion, Path, Problem, Query, Reply, Sort};

use self::create::create;
use self::logs::logs;
use self::permissions::hide_last_errors;
use self::replay::replay;
use self::runs::{cancel, run};
pub(super) use self::schedules::reschedule;
use self::test_run::test;
use self::update::update;
use self::views::{AutomationView, find_readable, view};
use crate::App;
use crate::call::{Call, scope};

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("automations")
        .get("/api/automations/{id}/runs/{runId}", run, "Get a run of an automation with its steps")
        .post("/api/automations/{id}/runs/{runId}/cancel", cancel, "Cancel a run that has not ended")
        .post(
            "/api/automations/{id}/runs/{runId}/replay",
            replay,
            "Start a new run of the current definition with the trigger of an earlier run",
        )
        .extension()
        .post("/api/automations", create, "Create an automation")
        .get("/api/automations", list, "List automations")
        .get("/api/automations/{id}", read, "Get an automation with its trigger, steps and statistics")
        .put("/api/automations/{id}", update, "Update, enable or disable an automation")
        .delete(
            "/api/automations/{id}",
            delete,
            "Delete an automation with all its runs and logs permanently",
        )
        .get("/api/automations/{id}/logs", logs, "List an automation's runs with their steps, newest first")
        .post(
            "/api/automations/{id}/test",
            test,
            "Run an automation's real steps now, without counting the run",
        )
}

/// Runs, each with its steps, deleted by one statement.
const RUNS_OF_BATCH: i64 = 1_000;

web::list_query!(AutomationsQuery {
    /// Only automations in this folder.
    folder_id: Option<Uuid>,
    /// Order by creation; default `oldest`.
    sort: Option<Sort>,
});

web::list_response!(AutomationListResponse { automations: AutomationView });

async fn list(
    call: Call<scope::AutomationsRead>,
    State(app): State<App>,
    Query(query): Query<AutomationsQuery>,
) -> Result<Reply<AutomationListResponse>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let filter = call
        .list_filter_in(
            &mut conn,
            Resource::Automations,
            &query.pagination().sorted(query.sort),
            query.folder_id,
        )
        .await?;
    let mut found = store::automations::list_automations(&mut conn, call.account_id, &filter).await?;
    hide_last_errors(&call, &mut conn, &mut found.rows).await?;
    Ok(call.sorted_page(found, &filter, |row| view(&app, row, None)))
}

async fn read(
    call: Call<scope::AutomationsRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<AutomationView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Automations, id).await?;
    let automation = find_readable(&call, &mut conn, id).await?;
    let durations = store::automations::find_durations(&mut conn, call.account_id, id).await?;
    Ok(call.reply(view(&app, automation, durations)))
}

/// Deletes in stages, because an automation can have millions of runs: in one transaction they would hold locks that
/// submissions and other runs wait for. A failure in between leaves a disabled automation that can be deleted again.
async fn delete(
    call: Call<scope::AutomationsDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deletion>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Automations, id).await?;
    if !begin_deletion(&mut tx, call.account_id, id, call.now).await? {
        return Err(Problem::not_found("automation"));
    }
    app.commit(tx, vec![]).await?;
    app.http_targets.invalidate(id);
    // Runs that a worker is writing are left to the second pass, when most of them have ended.
    for locked in [LockedRuns::Skip, LockedRuns::Wait] {
        delete_runs(&app, id, locked).await?;
    }

    let mut tx = store::begin(&app.db).await?;
    // Runs that were inserted meanwhile. Their rows are locked before the automation's, as a worker does it.
    delete_automation_runs(&mut tx, id, Uuid::nil(), LockedRuns::Wait, RUNS_OF_BATCH).await?;
    usage::lock(&mut tx, call.account_id).await?;
    if !delete_automation(&mut tx, call.account_id, id).await? {
        return Err(Problem::not_found("automation"));
    }
    usage::release(&mut tx, call.account_id, Counter::Projects).await?;
    call.commit(&app, tx, vec![]).await?;
    app.http_targets.invalidate(id);
    Ok(call.reply(Deletion::now()))
}

/// Deletes the runs of an automation in batches, each in its own transaction.
async fn delete_runs(app: &App, automation_id: Uuid, locked: LockedRuns) -> Result<(), Problem> {
    let mut last = Uuid::nil();
    loop {
        let mut conn = store::acquire(&app.db).await?;
        match delete_automation_runs(&mut conn, automation_id, last, locked, RUNS_OF_BATCH).await? {
            Some(id) => last = id,
            None => return Ok(()),
        }
    }
}
