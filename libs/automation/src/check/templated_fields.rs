//! The templates and expressions of a step, with their paths below it.

use serde_json::{Map, Value};

use crate::definition::{Action, Step};

/// A field of a step that is evaluated.
pub(super) enum Field<'a> {
    Expression(&'a str),
    Template(&'a str),
    Json(&'a Value),
    /// An expression that sees each element of a list.
    ElementExpression(&'a str),
    /// Templates that see each element of a list.
    ElementJson(&'a Value),
}

/// Lists the evaluated fields of a step, without those of the steps inside it.
pub(super) fn templated_fields(step: &Step) -> Vec<(String, Field<'_>)> {
    let mut found: Vec<(String, Field<'_>)> = Vec::new();
    if let Some(condition) = &step.options.condition {
        add(&mut found, "if", Field::Expression(condition));
    }
    match &step.action {
        Action::Condition(condition) => {
            for (at, branch) in condition.branches.iter().enumerate() {
                add(&mut found, &format!("branches[{at}].if"), Field::Expression(&branch.condition));
            }
        }
        Action::Set(set) => add_members(&mut found, "values", &set.values),
        Action::Transform(transform) => {
            add(&mut found, "input", Field::Json(&transform.input));
            if let Some(filter) = &transform.filter {
                add(&mut found, "filter", Field::ElementExpression(filter));
            }
            if let Some(sort) = &transform.sort {
                add(&mut found, "sort.by", Field::ElementExpression(&sort.by));
            }
            if let Some(map) = &transform.map {
                add(&mut found, "map", Field::ElementJson(map));
            }
        }
        Action::ForEach(each) => add(&mut found, "items", Field::Json(&each.items)),
        Action::Wait(wait) => {
            if let Some(until) = &wait.until {
                add(&mut found, "until", Field::Template(until));
            }
        }
        Action::Stop(stop) => {
            if let Some(message) = &stop.message {
                add(&mut found, "message", Field::Template(message));
            }
        }
        Action::Fetch(fetch) => {
            add(&mut found, "url", Field::Template(&fetch.url));
            add_members(&mut found, "headers", &fetch.headers);
            if let Some(body) = &fetch.body {
                add(&mut found, "body", Field::Json(body));
            }
        }
        Action::Respond(respond) => {
            add_members(&mut found, "headers", &respond.headers);
            if let Some(body) = &respond.body {
                add(&mut found, "body", Field::Json(body));
            }
        }
        Action::CreateEntry(entry) => add_members(&mut found, "data", &entry.data),
        Action::DeleteEntry(entry) => add(&mut found, "entryId", Field::Template(&entry.entry_id)),
        Action::UpdatePage(page) => {
            let publish_at = page.publish_at.as_ref().and_then(Option::as_ref);
            let texts = [
                ("slug", page.slug.as_ref()),
                ("title", page.title.as_ref()),
                ("html", page.html.as_ref()),
                ("publishAt", publish_at),
                ("ifUnmodifiedSince", page.if_unmodified_since.as_ref()),
            ];
            for (path, text) in texts {
                if let Some(text) = text {
                    add(&mut found, path, Field::Template(text));
                }
            }
            if let Some(is_published) = &page.is_published {
                add(&mut found, "isPublished", Field::Json(is_published));
            }
        }
        Action::Find(find) => {
            add_members(&mut found, "where", &find.filter);
            if let Some(since) = &find.since {
                add(&mut found, "since", Field::Template(since));
            }
        }
        Action::CreateSubmission(submission) => add_members(&mut found, "payload", &submission.payload),
        Action::SendWebhook(webhook) => add_members(&mut found, "payload", &webhook.payload),
    }
    found
}

fn add<'a>(found: &mut Vec<(String, Field<'a>)>, path: &str, field: Field<'a>) {
    found.push((path.to_owned(), field));
}

fn add_members<'a>(found: &mut Vec<(String, Field<'a>)>, path: &str, members: &'a Map<String, Value>) {
    found.extend(members.iter().map(|(name, value)| (format!("{path}.{name}"), Field::Json(value))));
}
