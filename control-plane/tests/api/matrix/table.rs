//! Writes the matrix as a text file, so that a change of permissions shows as a diff.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use web::Endpoint;

use super::case::{CallSubject, Case};
use super::credentials::Column;
use super::rules::ResponseSummary;

const COLUMNS: [&str; 13] = [
    "no key",
    "garbage",
    "expired",
    "revoked",
    "its scope",
    "63 others",
    "folder in",
    "folder out",
    "ids with",
    "ids without",
    "other account",
    "session",
    "foreign page",
];

const INTRODUCTION: &str = "\
The authorization matrix. The test `matrix` writes this file and compares it with the checked-in one.

  its scope      a key with just the scope of the endpoint      63 others  keys with one of the others
  folder in/out  a key restricted to a folder, called with a resource inside or outside of it
  ids with/-out  a key restricted to ids, called with one of them or another one
  session        a session, from a page of this host             foreign page  from a page of another site
  ·              the request has no id that could be outside
";

/// The column heading of a caller.
pub(super) fn column_of(endpoint: &Endpoint, column: Column) -> String {
    let word = match column {
        Column::NoKey => "no key",
        Column::Garbage => "garbage",
        Column::Expired => "expired",
        Column::Revoked => "revoked",
        Column::OneScope(scope)
            if endpoint.scopes.as_ref().is_some_and(|all| *all == [scope.to_string()]) =>
        {
            "its scope"
        }
        Column::OneScope(_) => "63 others",
        Column::FolderInside => "folder in",
        Column::FolderOutside => "folder out",
        Column::IdsWith => "ids with",
        Column::IdsWithout => "ids without",
        Column::OtherAccount => "other account",
        Column::Session => "session",
        Column::SessionForeign => "foreign page",
    };
    word.to_owned()
}

/// Writes the table, and fails if it differs from the checked-in one.
pub(super) fn compare(cases: &[Case], responses: &BTreeMap<(usize, String), ResponseSummary>) {
    let rows: Vec<Vec<String>> =
        cases.iter().enumerate().map(|(at, case)| row(at, case, responses)).collect();
    let heading = ["operation", "about"].into_iter().chain(COLUMNS).map(str::to_owned).collect();
    let all: Vec<Vec<String>> = [vec![heading], rows].concat();
    let width = |at: usize| all.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..all[0].len()).map(width).collect();
    let mut text = format!("{INTRODUCTION}\n");
    for row in &all {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}  "));
        writeln!(text, "{}", cells.collect::<String>().trim_end()).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/matrix.txt");
    if std::fs::read_to_string(&path).unwrap_or_default() != text {
        std::fs::write(&path, text).unwrap();
        panic!("review and commit the rewritten matrix.txt");
    }
}

fn row(at: usize, case: &Case, responses: &BTreeMap<(usize, String), ResponseSummary>) -> Vec<String> {
    let about = match (case.position, case.subject) {
        ("", CallSubject::Nothing | CallSubject::Account) => String::new(),
        (position, CallSubject::NamesAmongOthers(kind)) => format!("{position} ({})", kind.as_str()),
        ("", CallSubject::Lists(kind)) => format!("list of {}", kind.as_str()),
        ("", CallSubject::Creates(_)) => "a new one".to_owned(),
        ("", CallSubject::First(_)) => "the first one".to_owned(),
        ("", _) => "{id}".to_owned(),
        (position, _) => position.to_owned(),
    };
    let cell = |column: &str| {
        responses.get(&(at, column.to_owned())).map_or_else(|| "·".to_owned(), ToString::to_string)
    };
    [case.operation.to_owned(), about].into_iter().chain(COLUMNS.map(cell)).collect()
}
