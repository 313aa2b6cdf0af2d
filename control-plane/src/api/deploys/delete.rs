//! Deletes a deploy that was never live.

use axum::extract::State;
use contract::Change;
use domain::previews;
use domain::scopes::Resource;
use store::deploys::Status;
use store::usage;
use uuid::Uuid;
use web::{Code, Deletion, Path, Problem, Reply};

use super::read::find;
use crate::App;
use crate::call::{Call, scope};

pub(super) async fn delete(
    call: Call<scope::DeploysDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deletion>, Problem> {
    let (account_id, now) = (call.account_id, app.clock.now());
    let mut tx = store::begin(&app.db).await?;
    usage::lock(&mut tx, account_id).await?;
    let deploy = find(&call, &mut tx, id).await?;
    if deploy.status == Status::Preview {
        // As when it is made.
        call.check_new(Resource::Pages)?;
    }
    if !store::deploys::previews::delete_unpublished(&mut tx, account_id, id, now).await? {
        return Err(Problem::new(
            Code::Conflict,
            "only previews and unprocessed deploys can be deleted; this one was published, or is being processed",
        )
        .hint("see its state with GET /api/deploy/{id}; POST /api/deploy/{id}/rollback reverts a live deploy"));
    }
    let preview = deploy.preview_token.zip(deploy.subdomain);
    let changes = preview.map(|(token, name)| Change::Host { host: previews::label(&token, &name) });
    call.commit(&app, tx, changes.into_iter().collect()).await?;
    Ok(call.reply(Deletion::now()))
}
