//! Notes of a deploy: what was ignored or renamed, where, and why.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of notes of one kind; one more note counts the rest.
pub const NOTES_MAX: usize = 1_000;
/// Maximum number of characters of a line or name that a note repeats.
const SHOWN_CHARS_MAX: usize = 120;

/// A note of a deploy. A line of rules that has one is ignored; all other lines work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DeployNote")]
pub struct Note {
    /// Path of the file in the site, such as `_redirects`.
    pub file: String,
    /// Number of the line, from 1; absent if the note is about the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What was ignored or changed, and what to do.
    pub reason: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{} line {line}: {}", self.file, self.reason),
            None => write!(f, "{}: {}", self.file, self.reason),
        }
    }
}

/// Collects notes, at most [`NOTES_MAX`].
#[derive(Debug, Default)]
pub struct Notes {
    notes: Vec<Note>,
    dropped: usize,
}

impl Notes {
    /// Adds a note about a line of a file, numbered from 1.
    pub fn push_line(&mut self, file: &str, line: usize, reason: impl Into<String>) {
        self.push(Note { file: file.to_owned(), line: Some(line), reason: reason.into() });
    }

    /// Adds a note about a whole file.
    pub fn push_file(&mut self, file: &str, reason: impl Into<String>) {
        self.push(Note { file: file.to_owned(), line: None, reason: reason.into() });
    }

    /// Returns the notes by file and line. Notes about the whole file come first.
    pub fn finish(mut self) -> Vec<Note> {
        self.notes.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        if self.dropped > 0
            && let Some(last) = self.notes.last()
        {
            let (file, reason) = (last.file.clone(), format!("{} more notes are left out", self.dropped));
            self.notes.push(Note { file, line: None, reason });
        }
        self.notes
    }

    fn push(&mut self, note: Note) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        } else {
            self.dropped += 1;
        }
    }
}

/// Returns a text of the owner as a note repeats it: shortened, and without control characters.
pub fn shown(text: &str) -> String {
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect();
    if text.chars().count() > SHOWN_CHARS_MAX {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_file_and_line() {
        let mut notes = Notes::default();
        notes.push_line("_redirects", 7, "late");
        notes.push_line("_redirects", 3, "early");
        notes.push_file("_redirects", "all");
        let notes = notes.finish();
        let texts: Vec<String> = notes.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["_redirects: all", "_redirects line 3: early", "_redirects line 7: late"]);
        let json = serde_json::to_value(&notes[1]).unwrap();
        assert_eq!(json, serde_json::json!({"file": "_redirects", "line": 3, "reason": "early"}));
    }

    #[test]
    fn a_file_of_nonsense_does_not_fill_the_answer() {
        let mut notes = Notes::default();
        (1..=30_000).for_each(|line| notes.push_line("_headers", line, "nonsense"));
        let notes = notes.finish();
        assert_eq!(notes.len(), NOTES_MAX + 1);
        assert!(notes.last().unwrap().reason.starts_with("29000 more notes"), "{:?}", notes.last());
    }

    #[test]
    fn a_long_line_is_shown_shortened_and_without_control_characters() {
        assert_eq!(shown("a\u{7}b"), "ab");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), SHOWN_CHARS_MAX + 1);
    }
}
