//! Exports all submissions of a form as CSV. Postgres writes the file; this process holds only one chunk of it.

use std::borrow::Cow;
use std::fmt::Write as _;

use domain::fields::{Field, FieldType};
use futures::TryStreamExt;
use futures::stream::BoxStream;
use uuid::Uuid;

use crate::{Conn, Error};

/// A chunk of the file.
pub type CsvChunk = bytes::Bytes;

/// Columns of every submission, before its answers.
const OWN: [(&str, &str); 4] = [
    ("id", "id"),
    ("submittedAt", r#"to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"#),
    ("status", "status"),
    // Escaped like `guarded` does.
    (
        "externalId",
        "case when ascii(external_id) in (9, 10, 13, 43, 45, 61, 64, 65291, 65293, 65309, 65312)
              then '''' || external_id else external_id end",
    ),
];
/// The column after the answers: values of fields that the form no longer has, as JSON.
const REST: &str = "otherAnswers";
/// The last column: stored answers to fields that the form never had, as JSON. It gets a number if a field has its name.
const EXTRA: &str = "extraAnswers";

/// Streams the submissions of a form that count, oldest first, as lines of a CSV file (RFC 4180) from one snapshot, every
/// field quoted. The
/// header line is [`csv_column_names`]. Unless the stream is read to its end, the connection must be closed.
pub async fn export_submissions<'c>(
    conn: &'c mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    fields: &[Field],
) -> Result<BoxStream<'c, Result<CsvChunk, Error>>, Error> {
    let mut columns: Vec<String> = OWN.iter().map(|(_, column)| (*column).to_owned()).collect();
    columns.extend(fields.iter().map(answer));
    let names: Vec<String> = fields.iter().map(|field| quoted(&field.name)).collect();
    columns.push(format!("nullif(payload - array[{}]::text[], '{{}}')", names.join(", ")));
    columns.push("extra".to_owned());
    // Null would stay unquoted.
    let columns: Vec<String> =
        columns.iter().map(|column| format!("coalesce(({column})::text, '')")).collect();
    let mut statement = String::from("copy (select ");
    // Ids contain only digits and dashes; names are quoted.
    let _infallible = write!(
        statement,
        "{} from submissions where account_id = '{account_id}' and form_id = '{form_id}' and status <> 'spam'
         order by created_at, id) to stdout (format csv, force_quote *)",
        columns.join(", ")
    );
    let pieces = conn.last_statement()?.copy_out_raw(&statement).await?;
    Ok(Box::pin(pieces.map_err(Error::from)))
}

/// Returns the column names.
pub fn csv_column_names(fields: &[Field]) -> Vec<Cow<'_, str>> {
    let own = OWN.iter().map(|(name, _)| *name);
    let names = own.chain(fields.iter().map(|field| field.name.as_str())).chain([REST]);
    let is_free = |name: &Cow<'_, str>| fields.iter().all(|field| field.name != **name);
    let numbered = (2..).map(|number| Cow::Owned(format!("{EXTRA}{number}")));
    let extra = std::iter::once(Cow::Borrowed(EXTRA)).chain(numbered).find(is_free);
    names.map(Cow::Borrowed).chain(extra).collect()
}

/// Returns the SQL of a field's column; multiple choices are joined with `; `.
fn answer(field: &Field) -> String {
    let name = quoted(&field.name);
    let text = format!("payload ->> {name}");
    let of_kind = |kind: &str| format!("jsonb_typeof(payload -> {name}) = '{kind}'");
    match field.kind {
        // A value from when the field was a text field stays a text, even if it looks like a number.
        FieldType::Number => {
            format!("case when {} then {text} else {} end", of_kind("number"), guarded(&text))
        }
        FieldType::Multiselect => {
            let joined = format!(
                "(select string_agg(one, '; ') from jsonb_array_elements_text(payload -> {name}) as one)"
            );
            let joined = guarded_by(&format!("payload -> {name} ->> 0"), &joined);
            format!("case when {} then {joined} else {} end", of_kind("array"), guarded(&text))
        }
        _ => guarded(&text),
    }
}

/// Returns SQL that prefixes a text so that no spreadsheet takes it for a formula.
fn guarded(text: &str) -> String {
    guarded_by(text, text)
}

/// Like [`guarded`], with the check on another expression. Compares the code of the first character (tab, line feed,
/// carriage return, `+`, `-`, `=`, `@`, and the full-width forms of the last four, which some spreadsheets read alike),
/// which takes half as long over many rows as a pattern.
fn guarded_by(beginning: &str, text: &str) -> String {
    format!(
        "case when ascii({beginning}) in (9, 10, 13, 43, 45, 61, 64, 65291, 65293, 65309, 65312) then '''' || ({text}) else {text} end"
    )
}

/// Quotes a text for SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
