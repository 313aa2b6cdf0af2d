//! All submissions of a form as a CSV file, written by Postgres itself: nothing here holds more than a piece of it.

use std::fmt::Write as _;

use domain::fields::{Field, FieldType};
use futures::TryStreamExt;
use futures::stream::BoxStream;
use uuid::Uuid;

use crate::{Conn, Error};

/// A piece of the file.
pub type CsvChunk = bytes::Bytes;

/// Columns that every submission has, before its answers.
const OWN: [(&str, &str); 4] = [
    ("id", "id"),
    ("submittedAt", r#"to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"#),
    ("status", "status"),
    // As `guarded` writes it.
    (
        "externalId",
        "case when ascii(external_id) in (9, 10, 13, 43, 45, 61, 64) then '''' || external_id else external_id end",
    ),
];
/// The last column: answers to fields that the form doesn't have any more, as JSON.
const REST: &str = "otherAnswers";

/// The submissions of a form of the account that count, oldest first, as lines of a CSV file (RFC 4180, without the
/// line of names, which is [`csv_column_names`]), as they were when it began. Unless it is read to its end, the connection
/// must be closed.
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
    let mut statement = String::from("copy (select ");
    // Ids are digits and dashes; names stand between quotes.
    let _infallible = write!(
        statement,
        "{} from submissions where account_id = '{account_id}' and form_id = '{form_id}' and status <> 'spam'
         order by created_at, id) to stdout (format csv)",
        columns.join(", ")
    );
    let pieces = conn.copy_out_raw(&statement).await?;
    Ok(Box::pin(pieces.map_err(Error::from)))
}

/// What the columns are called.
pub fn csv_column_names(fields: &[Field]) -> Vec<&str> {
    let own = OWN.iter().map(|(name, _)| *name);
    own.chain(fields.iter().map(|field| field.name.as_str())).chain([REST]).collect()
}

/// A field's answer as a column: several chosen ones with `; ` between.
fn answer(field: &Field) -> String {
    let name = quoted(&field.name);
    let text = format!("payload ->> {name}");
    let of_kind = |kind: &str| format!("jsonb_typeof(payload -> {name}) = '{kind}'");
    match field.kind {
        // What was asked as a text once is no number, though it may look like one.
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

/// A text that no spreadsheet takes for a formula.
fn guarded(text: &str) -> String {
    guarded_by(text, text)
}

/// The same for a text that begins like another. By the number of its first letter (tab, line feed, carriage return, `+`,
/// `-`, `=`, `@`), which over many rows takes half as long as a pattern.
fn guarded_by(beginning: &str, text: &str) -> String {
    format!(
        "case when ascii({beginning}) in (9, 10, 13, 43, 45, 61, 64) then '''' || ({text}) else {text} end"
    )
}

/// A text as SQL writes it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
