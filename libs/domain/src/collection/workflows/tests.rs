//! Compares the catalogue with the specification's table.

use super::*;
use crate::fields::check;

const SPECIFIED: &str = include_str!("specified.txt");

/// Parses a row of the table: the name, and fields such as `text R (...)`.
fn specified(row: &str) -> (&str, Vec<Field>) {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let fields = cells[1].split("; ").flat_map(|part| {
        let (names, rest) = part.split_once(": ").unwrap();
        let (kind, rest) = rest.split_once(' ').unwrap();
        let (required, details) = rest.split_at(1);
        let details = details.trim().trim_start_matches('(').trim_end_matches(')');
        let field = move |name: &str| field(name, kind, required == "R", details);
        names.split(", ").map(field).collect::<Vec<_>>()
    });
    (cells[0], fields.collect())
}

fn field(name: &str, kind: &str, required: bool, details: &str) -> Field {
    let mut field = serde_json::json!({"name": name, "label": "", "type": kind, "required": required});
    match kind {
        "select" => {
            let range = details.split_once('-').or_else(|| details.split_once(" to "));
            let ends = range.and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
            let options: Vec<String> = match ends {
                Some((from, to)) => (from..=to).map(|n: i32| n.to_string()).collect(),
                None => details.split(", ").map(str::to_owned).collect(),
            };
            field["options"] = options.into();
        }
        "file" => {
            let (accept, size) = details.split_once(", maxFileSize ").unwrap();
            field["accept"] = accept.trim_start_matches("accept ").trim_matches('`').into();
            field["maxFileSize"] = size.parse::<u64>().unwrap().into();
        }
        "number" => {
            for (word, bound) in details.split(", ").map(|part| part.split_once(' ').unwrap()) {
                field[word] = bound.parse::<f64>().unwrap().into();
            }
        }
        _ => assert_eq!(details, ""),
    }
    serde_json::from_value(field).unwrap()
}

#[test]
fn the_workflows_match_the_specification_in_its_order() {
    let unlabelled = |field| Field { label: String::new(), ..field };
    let ours: Vec<(&str, Vec<Field>)> = ALL
        .iter()
        .map(|workflow| (workflow.id, workflow.fields().into_iter().map(unlabelled).collect()))
        .collect();
    let theirs: Vec<_> = SPECIFIED.lines().map(specified).collect();
    assert_eq!(ours, theirs);
}

#[test]
fn every_workflow_is_a_valid_form() {
    for workflow in &ALL {
        assert_eq!(check(&workflow.fields()), [], "{}", workflow.id);
        assert!(workflow.description.ends_with('.'), "{}", workflow.id);
        assert!(std::ptr::eq(find(workflow.id).unwrap(), workflow), "{}", workflow.id);
    }
    assert!(find("Contact").is_none());
}
