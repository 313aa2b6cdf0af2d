//! Results of a form for its owner, whether they are public or not. The edge passes `GET /api/forms/{id}/results` with a
//! key on to here.

use axum::extract::State;
use domain::results::{OwnFieldResults, countable, of_owner};
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::Serialize;
use store::submissions::{count_histograms, get_results, list_number_summaries};
use uuid::Uuid;
use web::{Path, Problem, Reply};

use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FormResultsResponse {
    /// The form's id.
    form_id: Uuid,
    /// Display name of the form.
    name: String,
    /// Number of submissions, without spam.
    submissions: i64,
    /// Results of each choice, checkbox and number field, in the form's order.
    fields: Vec<OwnFieldResults>,
}

pub(super) async fn results(
    call: Call<scope::SubmissionsRead>,
    State(app): State<App>,
    Path(form_id): Path<Uuid>,
) -> Result<Reply<FormResultsResponse>, Problem> {
    // Counting reads all submissions, as an export does.
    let _permit = app.exports.acquire(call.account_id).await?;
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Forms, form_id).await?;
    let form = store::forms::find_form(&mut conn, call.account_id, form_id).await?;
    let form = form.ok_or_else(|| Problem::not_found("form"))?;
    let countable = countable(&form.fields);
    let (submissions, tallies) = get_results(&mut conn, call.account_id, form_id, &countable).await?;
    let (mut summaries, mut counts) = (Vec::new(), Vec::new());
    if !countable.numbers.is_empty() {
        summaries = list_number_summaries(&mut conn, call.account_id, form_id, &countable.numbers).await?;
        counts = count_histograms(&mut conn, call.account_id, form_id, &summaries).await?;
    }
    let fields = of_owner(&form.fields, &tallies, &summaries, &counts);
    Ok(call.reply(FormResultsResponse { form_id, name: form.name, submissions, fields }))
}
