//! Exports the log of changes as CSV. It is read page by page while it is sent, so that it occupies neither memory nor a
//! connection to Postgres for long.

use axum::body::Body;
use axum::extract::State;
use bytes::Bytes;
use domain::{FieldError, Listed};
use futures::stream::try_unfold;
use schemars::JsonSchema;
use serde::Deserialize;
use store::activity::{Activity, ActivityFilter, list_activity};
use uuid::Uuid;
use web::{Problem, Query};

use super::access::check_unrestricted;
use crate::App;
use crate::api::csv_file::CsvFile;
use crate::api::time_range::TimeRange;
use crate::call::{Call, scope};

const HEADING: &str =
    "at,actorType,actorId,actorName,operation,resourceType,resourceId,resourceName,requestId\r\n";
/// Rows read at a time.
const BATCH: i64 = 1_000;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ActivityExportQuery {
    /// Only changes from this day (UTC) or instant on.
    #[schemars(length(min = 10), extend("format" = "day-or-instant"))]
    from: Option<String>,
    /// Only changes up to the end of this day (UTC), or before this instant.
    #[schemars(length(min = 10), extend("format" = "day-or-instant"))]
    to: Option<String>,
}

pub(super) async fn export(
    call: Call<scope::AccountRead>,
    State(app): State<App>,
    Query(query): Query<ActivityExportQuery>,
) -> Result<CsvFile, Problem> {
    check_unrestricted(&call)?;
    let mut errors: Vec<FieldError> = Vec::new();
    let TimeRange { from, until } = TimeRange::read(query.from, query.to, &mut errors);
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let permit = app.exports.acquire(call.account_id).await?;
    let name = format!("activity-{}.csv", call.now.format("%Y-%m-%d"));
    let filter = ActivityFilter { from, until, limit: BATCH, ..ActivityFilter::default() };
    let account_id = call.account_id;
    let first = (filter, String::from(HEADING));
    // The permit is dropped with the stream.
    let pages = try_unfold((Some(first), permit), move |(next, permit)| {
        let app = app.clone();
        async move {
            let Some((filter, heading)) = next else { return Ok::<_, store::Error>(None) };
            let (text, next) = read_page(&app, account_id, filter, heading).await?;
            Ok(Some((Bytes::from(text), (next.map(|filter| (filter, String::new())), permit))))
        }
    });
    Ok(CsvFile { name, body: Body::from_stream(pages) })
}

/// Returns the rows of a page after `text`, and the filter of the next page, if there is one.
async fn read_page(
    app: &App,
    account_id: Uuid,
    mut filter: ActivityFilter,
    mut text: String,
) -> Result<(String, Option<ActivityFilter>), store::Error> {
    let mut conn = store::acquire(&app.db).await?;
    let mut rows = list_activity(&mut conn, account_id, &filter).await?;
    let limit = usize::try_from(filter.limit).unwrap_or_default();
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    for row in &rows {
        text.push_str(&line(row));
    }
    filter.after = rows.last().map(Listed::cursor);
    Ok((text, has_more.then_some(filter)))
}

fn line(row: &Activity) -> String {
    let id = |id: Option<Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
    let cells = [
        row.created_at.to_rfc3339(),
        row.actor_type.clone(),
        id(row.actor_id),
        row.actor_name.clone(),
        row.operation.clone(),
        row.resource_type.clone().unwrap_or_default(),
        id(row.resource_id),
        row.resource_name.clone().unwrap_or_default(),
        row.request_id.clone().unwrap_or_default(),
    ];
    cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\r\n"
}

/// Returns a cell in quotation marks. Spreadsheets execute text that looks like a formula, so such text begins with `'`.
fn quoted(cell: &str) -> String {
    let guard = if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{guard}{}\"", cell.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_neither_leave_its_cell_nor_become_a_formula() {
        assert_eq!(quoted("a \"b\", c"), "\"a \"\"b\"\", c\"");
        assert_eq!(quoted("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
        assert_eq!(quoted("forms.update"), "\"forms.update\"");
    }
}
