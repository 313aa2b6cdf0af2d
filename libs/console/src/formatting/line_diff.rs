//! The difference between two texts, line by line, with a few lines around each change.

use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// Unchanged lines around a change.
const CONTEXT: usize = 3;
/// Lines that are shown at most.
const LINES_MAX: usize = 1_000;
/// Characters of a line that are shown: a minified document is a single one.
const LINE_CHARS_MAX: usize = 400;
/// The search for the smallest difference ends here; what was found by then is right, but longer.
const TIMEOUT: Duration = Duration::from_millis(200);

/// The difference between two texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LineDiff {
    pub(crate) added: usize,
    pub(crate) removed: usize,
    /// Groups of changes that are near each other.
    pub(crate) groups: Vec<Vec<Line>>,
    /// Whether there are more changes than are shown.
    pub(crate) is_cut: bool,
}

/// A line of either text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    /// Its number in the old text; `None` if it was added.
    pub(crate) old: Option<usize>,
    /// Its number in the new text; `None` if it was removed.
    pub(crate) new: Option<usize>,
    pub(crate) text: String,
}

/// Compares two texts. Line ends of Windows and of others are the same.
pub(crate) fn compare(old: &str, new: &str) -> LineDiff {
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_lines(&old, &new);
    let mut compared = LineDiff { added: 0, removed: 0, groups: Vec::new(), is_cut: false };
    let mut shown = 0;
    for group in diff.grouped_ops(CONTEXT) {
        let mut lines = Vec::new();
        for change in group.iter().flat_map(|part| diff.iter_changes(part)) {
            match change.tag() {
                ChangeTag::Insert => compared.added += 1,
                ChangeTag::Delete => compared.removed += 1,
                ChangeTag::Equal => {}
            }
            if shown == LINES_MAX {
                compared.is_cut = true;
                continue;
            }
            shown += 1;
            let number = |index: Option<usize>| index.map(|index| index + 1);
            let (old, new) = (number(change.old_index()), number(change.new_index()));
            lines.push(Line { old, new, text: shortened(change.value()) });
        }
        if !lines.is_empty() {
            compared.groups.push(lines);
        }
    }
    compared
}

fn shortened(line: &str) -> String {
    let line = line.trim_end_matches('\n');
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_change_stands_between_its_neighbours() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let diff = compare(old, &old.replace('5', "five").replace('\n', "\r\n"));
        assert_eq!((diff.added, diff.removed, diff.groups.len()), (1, 1, 1));
        let lines: Vec<_> =
            diff.groups[0].iter().map(|line| (line.old, line.new, line.text.as_str())).collect();
        assert_eq!(lines[..2], [(Some(2), Some(2), "2"), (Some(3), Some(3), "3")]);
        assert_eq!(lines[3..5], [(Some(5), None, "5"), (None, Some(5), "five")]);
        assert_eq!(lines.len(), 8);
        assert!(compare(old, old).groups.is_empty());
    }

    #[test]
    fn a_long_difference_is_cut_and_still_counted() {
        let text = |word: &str| (0..3_000).map(|number| format!("{word}{number}\n")).collect::<String>();
        let diff = compare(&text("a"), &text("b"));
        assert_eq!((diff.added, diff.removed, diff.is_cut), (3_000, 3_000, true));
        assert_eq!(diff.groups.iter().map(Vec::len).sum::<usize>(), LINES_MAX);
        let line = compare("", &"é".repeat(10_000)).groups[0][0].text.clone();
        assert_eq!(line.chars().count(), LINE_CHARS_MAX + 1);
    }

    proptest! {
        #[test]
        fn the_counts_lead_from_one_text_to_the_other(old in "[ab\n]{0,60}", new in "[ab\n]{0,60}") {
            let diff = compare(&old, &new);
            let lines = |text: &str| text.split_inclusive('\n').count();
            prop_assert_eq!(lines(&old) + diff.added, lines(&new) + diff.removed);
            prop_assert_eq!(diff.groups.is_empty(), old == new);
        }
    }
}
