//! A form's submissions as a file, streamed as Postgres writes it.
//!
//! Spreadsheets take what begins like a formula for one, so such a text gets a `'` in front; numbers of number fields
//! stay numbers. Spam is left out. What was answered to fields that the form doesn't have any more stands in the last
//! column, as JSON.

use std::time::Duration;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ResponseDoc};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use domain::scopes::Resource;
use futures::{StreamExt, TryStreamExt};
use http::header;
use store::forms::Form;
use store::submissions::{Piece, column_names, export_submissions};
use tokio::sync::mpsc;
use uuid::Uuid;
use web::{Path, Problem};

use crate::App;
use crate::call::{Call, scope};
use crate::exports::ExportPermit;

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("submissions").get(
        "/api/forms/{id}/export",
        export,
        "Get a form's submissions as a CSV file",
    )
}

/// What is sent at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks that wait to be sent.
const CHUNKS: usize = 4;

/// A CSV file on its way.
pub(super) struct CsvFile {
    name: String,
    body: Body,
}

impl IntoResponse for CsvFile {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, "text/csv; charset=utf-8; header=present".to_owned()),
            (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", self.name)),
            (header::CACHE_CONTROL, "no-store".to_owned()),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        ];
        (headers, self.body).into_response()
    }
}

impl OperationOutput for CsvFile {
    type Inner = Self;

    fn operation_response(_: &mut GenContext, _: &mut Operation) -> Option<ResponseDoc> {
        let content = [("text/csv".to_owned(), MediaType::default())].into_iter().collect();
        Some(ResponseDoc { description: "The file.".to_owned(), content, ..ResponseDoc::default() })
    }

    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<u16>, ResponseDoc)> {
        let file = Self::operation_response(ctx, operation);
        file.into_iter().map(|file| (Some(200), file)).collect()
    }
}

async fn export(
    call: Call<scope::SubmissionsRead>,
    State(app): State<App>,
    Path(form_id): Path<Uuid>,
) -> Result<CsvFile, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Forms, form_id).await?;
    if call.plan().restrictions().contains(&"no_export") {
        return Err(call.plan_restricted("the export of submissions"));
    }
    let form = store::forms::find_form(&mut conn, call.account_id, form_id).await?;
    let form = form.ok_or_else(|| Problem::not_found("form"))?;
    drop(conn);
    let name = file_name(&form.name, &call.now.format("%Y-%m-%d").to_string());

    let permit = app.exports.acquire(call.account_id).await?;
    let (sender, mut chunks) = mpsc::channel(CHUNKS);
    tokio::spawn(write(app, call.account_id, form, sender, permit));
    // Until there is a beginning, there may still be a problem.
    let Some(Chunk::Bytes(first)) = chunks.recv().await else { return Err(Problem::away(true)) };
    let rest = futures::stream::unfold(Some(chunks), next);
    let body = futures::stream::once(async { Ok(first) }).chain(rest);
    Ok(CsvFile { name, body: Body::from_stream(body) })
}

/// What stands in the channel. Where it ends without [`Chunk::End`], the file was broken off.
enum Chunk {
    Bytes(Piece),
    End,
}

/// The next part of the body. One that is broken off ends with an error, so that nobody takes the beginning for the
/// whole.
async fn next(
    chunks: Option<mpsc::Receiver<Chunk>>,
) -> Option<(Result<Piece, std::io::Error>, Option<mpsc::Receiver<Chunk>>)> {
    let mut chunks = chunks?;
    match chunks.recv().await {
        Some(Chunk::Bytes(piece)) => Some((Ok(piece), Some(chunks))),
        Some(Chunk::End) => None,
        None => Some((Err(std::io::Error::other("the export was broken off")), None)),
    }
}

/// Writes the file into the channel. Whoever has gone, takes nothing for too long, or takes too long in all, gets no more:
/// with this ends the connection to Postgres, and with that the work there.
async fn write(app: App, account_id: Uuid, form: Form, to: mpsc::Sender<Chunk>, _permit: ExportPermit) {
    let (stall_timeout, timeout) = (app.exports.stall_timeout, app.exports.timeout);
    let written = async {
        let mut conn = store::acquire_own(&app.db).await?;
        let mut pieces = export_submissions(&mut conn, account_id, form.id, &form.fields).await?;
        let mut chunk = BytesMut::with_capacity(CHUNK_BYTES);
        chunk.extend_from_slice(heading(&form).as_bytes());
        while let Some(piece) = pieces.try_next().await? {
            chunk.extend_from_slice(&piece);
            if chunk.len() >= CHUNK_BYTES {
                let full = std::mem::replace(&mut chunk, BytesMut::with_capacity(CHUNK_BYTES));
                if !is_taken(&to, Chunk::Bytes(full.freeze()), stall_timeout).await {
                    return Ok(false);
                }
            }
        }
        let is_taken_whole = is_taken(&to, Chunk::Bytes(chunk.freeze()), stall_timeout).await
            && is_taken(&to, Chunk::End, stall_timeout).await;
        Ok::<_, store::Error>(is_taken_whole)
    };
    match tokio::time::timeout(timeout, written).await {
        Ok(Ok(true)) => {}
        Ok(Ok(false)) => tracing::info!(form.id = %form.id, "an export's reader takes no more"),
        Ok(Err(error)) => tracing::warn!(form.id = %form.id, %error, "an export is broken off"),
        Err(_) => tracing::info!(form.id = %form.id, "an export takes too long"),
    }
}

async fn is_taken(to: &mpsc::Sender<Chunk>, chunk: Chunk, stall_timeout: Duration) -> bool {
    to.send_timeout(chunk, stall_timeout).await.is_ok()
}

/// The line of names; of fields they are letters, digits, `_` and `-`.
fn heading(form: &Form) -> String {
    let guarded = |name: &str| if name.starts_with('-') { format!("'{name}") } else { name.to_owned() };
    let names: Vec<String> = column_names(&form.fields).into_iter().map(guarded).collect();
    names.join(",") + "\n"
}

/// A name that every system takes.
fn file_name(form: &str, day: &str) -> String {
    let plain: String =
        form.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' }).collect();
    let words: Vec<&str> = plain.split_whitespace().take(8).collect();
    let name: String = words.join("-").chars().take(60).collect();
    let name = if name.is_empty() { "form" } else { &name };
    format!("{name}-submissions-{day}.csv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_is_plain_whatever_the_form_is_called() {
        let named = |form: &str| file_name(form, "2027-01-31");
        assert_eq!(named("Contact us!"), "contact-us-submissions-2027-01-31.csv");
        assert_eq!(named("\"; rm -rf /\r\n../日本"), "rm-rf-submissions-2027-01-31.csv");
        assert_eq!(named("日本"), "form-submissions-2027-01-31.csv");
        assert!(named(&"long ".repeat(100)).len() < 100);
    }
}
