//! A page as its form was posted: its texts, and when visitors see it.

use chrono::{LocalResult, NaiveDateTime, SecondsFormat, TimeZone, Utc};
use chrono_tz::Tz;
use serde_json::{Map, Value, json};

use crate::form_submission::FormSubmission;

/// The texts that may be absent: an empty one removes them.
const OPTIONAL_TEXTS: [&str; 2] = ["css", "entryTemplate"];

/// Returns the members of a page that a form has.
pub(super) fn members(form: &FormSubmission, zone: &str) -> Map<String, Value> {
    let mut members = Map::new();
    let text = |name: &str| form.get(name).map(|text| with_line_ends(text, form.get("line_ends")));
    members.insert("title".to_owned(), json!(form.get("title").unwrap_or_default()));
    members.insert("html".to_owned(), json!(text("html").unwrap_or_default()));
    for name in OPTIONAL_TEXTS.into_iter().filter(|name| form.all(name).next().is_some()) {
        members.insert(name.to_owned(), json!(text(name)));
    }
    match form.get("visible") {
        Some("later") => {
            let at = form.get("publish_at").unwrap_or_default();
            members.insert("publishAt".to_owned(), json!(utc_of(at, zone)));
        }
        visible => {
            members.insert("isPublished".to_owned(), json!(visible == Some("yes")));
        }
    }
    members
}

/// Returns a text with the line ends that it had before a browser posted it, which always makes them those of Windows.
fn with_line_ends(text: &str, line_ends: Option<&str>) -> String {
    let plain = text.replace("\r\n", "\n");
    if line_ends == Some("crlf") { plain.replace('\n', "\r\n") } else { plain }
}

/// Returns a time of the account's zone as the API takes it. Text that is no time stays as it is, so that the API says so.
fn utc_of(local: &str, zone: &str) -> String {
    let zone: Tz = zone.parse().unwrap_or(Tz::UTC);
    let formats = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"];
    let parsed = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(local, format).ok());
    match parsed.map(|at| zone.from_local_datetime(&at)) {
        Some(LocalResult::Single(at) | LocalResult::Ambiguous(at, _)) => {
            at.with_timezone(&Utc).to_rfc3339_opts(SecondsFormat::Secs, true)
        }
        Some(LocalResult::None) | None => local.to_owned(),
    }
}

/// Returns a time of the API for an input of the account's zone.
pub(super) fn local_of(at: &str, zone: &str) -> Option<String> {
    let zone: Tz = zone.parse().unwrap_or(Tz::UTC);
    let at = crate::formatting::times::parse(at)?;
    Some(at.with_timezone(&zone).format("%Y-%m-%dT%H:%M").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted(fields: &[(&str, &str)]) -> Value {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Value::Object(members(&FormSubmission::of(fields), "Europe/Berlin"))
    }

    #[test]
    fn an_empty_text_is_removed_and_an_absent_one_stays() {
        let page = posted(&[("title", "T"), ("html", "<p>\r\nx"), ("css", ""), ("visible", "yes")]);
        assert_eq!(page, json!({ "title": "T", "html": "<p>\nx", "css": null, "isPublished": true }));
        let page = posted(&[("title", "T"), ("html", "a\r\nb"), ("line_ends", "crlf"), ("visible", "no")]);
        assert_eq!(page, json!({ "title": "T", "html": "a\r\nb", "isPublished": false }));
    }

    #[test]
    fn a_time_is_that_of_the_accounts_zone() {
        let at = |text: &str| posted(&[("visible", "later"), ("publish_at", text)])["publishAt"].clone();
        assert_eq!(at("2026-12-01T09:00"), "2026-12-01T08:00:00Z");
        assert_eq!(at("2026-07-01T09:00:30"), "2026-07-01T07:00:30Z");
        assert_eq!(at("tomorrow"), "tomorrow", "the API says what is wrong");
        // The clock jumps from 2:00 to 3:00.
        assert_eq!(at("2026-03-29T02:30"), "2026-03-29T02:30");
        assert_eq!(
            local_of("2026-12-01T08:00:00.000Z", "Europe/Berlin").as_deref(),
            Some("2026-12-01T09:00")
        );
    }
}
