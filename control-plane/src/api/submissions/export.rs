//! Exports a form's submissions as CSV, streamed as Postgres produces it.
//!
//! Spreadsheets execute text that looks like a formula, so such text is prefixed with `'`; numbers in number fields
//! stay numbers. Spam is left out. Answers to fields that the form no longer has, and stored ones to fields that it never
//! had, are in the last two columns, as JSON.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use bytes::BytesMut;
use domain::scopes::Resource;
use futures::{StreamExt, TryStreamExt};
use store::forms::Form;
use store::submissions::{CsvChunk, csv_column_names, export_submissions};
use tokio::sync::mpsc;
use uuid::Uuid;
use web::{Path, Problem};

use crate::App;
use crate::api::csv_file::CsvFile;
use crate::call::{Call, scope};
use crate::exports::ExportPermit;

/// Size of one chunk of the body.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks buffered ahead of the reader.
const CHUNKS: usize = 4;

pub(super) async fn export(
    call: Call<scope::SubmissionsRead>,
    State(app): State<App>,
    Path(form_id): Path<Uuid>,
) -> Result<CsvFile, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Forms, form_id).await?;
    if call.plan().restrictions().contains(&"no_export") {
        return Err(call.plan_restricted("exporting submissions"));
    }
    let form = store::forms::find_form(&mut conn, call.account_id, form_id).await?;
    let form = form.ok_or_else(|| Problem::not_found("form"))?;
    drop(conn);
    let name = file_name(&form.name, &call.now.format("%Y-%m-%d").to_string());

    let permit = app.exports.acquire(call.account_id).await?;
    let (sender, mut chunks) = mpsc::channel(CHUNKS);
    tokio::spawn(write(app, call.account_id, form, sender, permit));
    // Before the first chunk, a failure can still be reported as a problem.
    let Some(Chunk::Bytes(first)) = chunks.recv().await else { return Err(Problem::nothing_changed()) };
    let rest = futures::stream::unfold(Some(chunks), next);
    let body = futures::stream::once(async { Ok(first) }).chain(rest);
    Ok(CsvFile { name, body: Body::from_stream(body) })
}

/// An item in the channel. If the channel closes without [`Chunk::End`], the file is incomplete.
enum Chunk {
    Bytes(CsvChunk),
    End,
}

/// The next part of the body. An incomplete file ends with an error, so that the client can't mistake it for a whole
/// one.
async fn next(
    chunks: Option<mpsc::Receiver<Chunk>>,
) -> Option<(Result<CsvChunk, std::io::Error>, Option<mpsc::Receiver<Chunk>>)> {
    let mut chunks = chunks?;
    match chunks.recv().await {
        Some(Chunk::Bytes(piece)) => Some((Ok(piece), Some(chunks))),
        Some(Chunk::End) => None,
        None => Some((Err(std::io::Error::other("the export was interrupted")), None)),
    }
}

/// Writes the file into the channel. Stops if the reader disconnects or stalls, or if the export times out; this
/// closes the Postgres connection, which cancels the query there.
async fn write(app: App, account_id: Uuid, form: Form, to: mpsc::Sender<Chunk>, _permit: ExportPermit) {
    let (stall_timeout, timeout) = (app.exports.stall_timeout, app.exports.timeout);
    let writing = async {
        let mut conn = app.exports.db.acquire(timeout).await?;
        let mut pieces = export_submissions(&mut conn, account_id, form.id, &form.fields).await?;
        let mut chunk = BytesMut::with_capacity(CHUNK_BYTES);
        chunk.extend_from_slice(heading(&form).as_bytes());
        while let Some(piece) = pieces.try_next().await? {
            chunk.extend_from_slice(&piece);
            if chunk.len() >= CHUNK_BYTES {
                let full = std::mem::replace(&mut chunk, BytesMut::with_capacity(CHUNK_BYTES));
                if !send(&to, Chunk::Bytes(full.freeze()), stall_timeout).await {
                    return Ok(false);
                }
            }
        }
        let is_complete = send(&to, Chunk::Bytes(chunk.freeze()), stall_timeout).await
            && send(&to, Chunk::End, stall_timeout).await;
        Ok::<_, store::Error>(is_complete)
    };
    match tokio::time::timeout(timeout, writing).await {
        Ok(Ok(true)) => {}
        Ok(Ok(false)) => tracing::info!(form.id = %form.id, "an export's reader disconnected or stalled"),
        Ok(Err(error)) => tracing::warn!(form.id = %form.id, %error, "an export failed"),
        Err(_) => tracing::info!(form.id = %form.id, "an export timed out"),
    }
}

async fn send(to: &mpsc::Sender<Chunk>, chunk: Chunk, stall_timeout: Duration) -> bool {
    to.send_timeout(chunk, stall_timeout).await.is_ok()
}

/// The header line; names of fields have letters, digits, `_` and `-` only.
fn heading(form: &Form) -> String {
    let guarded =
        |name: &str| if name.starts_with('-') { format!("\"'{name}\"") } else { format!("\"{name}\"") };
    let names: Vec<String> = csv_column_names(&form.fields).iter().map(|name| guarded(name)).collect();
    names.join(",") + "\n"
}

/// A file name that is valid on every operating system.
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
