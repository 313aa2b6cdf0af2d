//! Endpoints that create, read, list, update and delete form definitions. The edge serves a form's page and accepts its
//! submissions.

mod closes_at;
pub(super) mod create;
mod links;
mod mappings;
mod recipients;
mod update;
pub(super) mod views;

use axum::extract::State;
use contract::Change;
use domain::scopes::Resource;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Deletion, PageInfo, Path, Problem, Query, Reply, Sort};

use self::create::create;
use self::update::update;
use self::views::{FormView, views};
use crate::App;
use crate::call::{Call, scope};

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("forms")
        .post("/api/forms", create, "Create a form")
        .get("/api/forms", list, "List forms")
        .get("/api/forms/{id}", read, "Get a form with its fields")
        .put("/api/forms/{id}", update, "Update a form")
        .delete("/api/forms/{id}", delete, "Delete a form and its submissions permanently")
}

web::list_query!(FormsQuery {
    /// Only forms in this folder.
    folder_id: Option<Uuid>,
    /// Order by creation; default `oldest`.
    sort: Option<Sort>,
});

web::list_response!(FormListResponse { forms: FormView });

async fn list(
    call: Call<scope::FormsRead>,
    State(app): State<App>,
    Query(query): Query<FormsQuery>,
) -> Result<Reply<FormListResponse>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let filter = call
        .list_filter_in(&mut conn, Resource::Forms, &query.pagination().sorted(query.sort), query.folder_id)
        .await?;
    let found = store::forms::list_forms(&mut conn, call.account_id, &filter).await?;
    let page = PageInfo::sorted(&found.rows, found.has_more, filter.newest_first);
    let forms = views(&call, &app, &mut conn, found.rows).await?;
    Ok(call.reply(FormListResponse { forms, page }).paginated())
}

async fn read(
    call: Call<scope::FormsRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<FormView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Forms, id).await?;
    let form = store::forms::find_form(&mut conn, call.account_id, id).await?;
    let view = views(&call, &app, &mut conn, form.into_iter().collect()).await?.pop();
    Ok(call.reply(view.ok_or_else(|| Problem::not_found("form"))?))
}

async fn delete(
    call: Call<scope::FormsDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deletion>, Problem> {
    call.require_fresh_sign_in(&app)?;
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Forms, id).await?;
    usage::lock(&mut tx, call.account_id).await?;
    if !store::forms::delete_form(&mut tx, call.account_id, id).await? {
        return Err(Problem::not_found("form"));
    }
    usage::release(&mut tx, call.account_id, Counter::Projects).await?;
    call.commit(&app, tx, vec![Change::Form { form_id: id }]).await?;
    Ok(call.reply(Deletion::now()))
}
