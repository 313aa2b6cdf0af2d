//! A change of the questions: what a button of the page does.

use super::{Draft, Question};

/// The most questions that a draft may have.
const QUESTIONS_MAX: usize = 100;

/// What a button of the builder does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::screens::builder) enum Change {
    /// Adds a question at the end.
    Add,
    /// Adds a copy of a question after it.
    Copy(usize),
    Up(usize),
    Down(usize),
    Remove(usize),
    /// Changes nothing: the page is shown again, with the inputs that the types need.
    Nothing,
}

impl Change {
    /// Reads the value of a button: `add`, `up:2`. Any other changes nothing.
    pub(in crate::screens::builder) fn parse(value: &str) -> Self {
        let (verb, at) = value.split_once(':').unwrap_or((value, ""));
        match (verb, at.parse()) {
            ("add", _) => Self::Add,
            ("copy", Ok(at)) => Self::Copy(at),
            ("up", Ok(at)) => Self::Up(at),
            ("down", Ok(at)) => Self::Down(at),
            ("remove", Ok(at)) => Self::Remove(at),
            _ => Self::Nothing,
        }
    }
}

impl Draft {
    /// Makes a change. Returns the index of the question that takes the focus, if one does.
    pub(in crate::screens::builder) fn change(&mut self, change: Change, new_type: &str) -> Option<usize> {
        let count = self.questions.len();
        let has_room = count < QUESTIONS_MAX;
        let focus = match change {
            Change::Add if has_room => {
                self.questions.push(Question::new(new_type, count + 1));
                count
            }
            Change::Copy(at) if at < count && has_room => {
                let mut copy = self.questions[at].clone();
                copy.set("name", String::new());
                self.questions.insert(at + 1, copy);
                at + 1
            }
            Change::Up(at) if at < count => {
                self.questions.swap(at, at.saturating_sub(1));
                at.saturating_sub(1)
            }
            Change::Down(at) if at < count => {
                let to = (at + 1).min(count - 1);
                self.questions.swap(at, to);
                to
            }
            Change::Remove(at) if at < count => {
                self.questions.remove(at);
                at.min(count.saturating_sub(2))
            }
            _ => return None,
        };
        *self = std::mem::take(self).with_names();
        Some(focus).filter(|at| *at < self.questions.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(draft: &Draft) -> Vec<&str> {
        draft.questions.iter().map(|question| question.get("label")).collect()
    }

    #[test]
    fn questions_are_added_moved_copied_and_removed() {
        let mut draft = Draft::empty();
        let mut make = |value: &str| {
            let focus = draft.change(Change::parse(value), "email");
            (focus, labels(&draft).join(" "))
        };
        assert_eq!(make("add"), (Some(1), "Question 1 Question 2".to_owned()));
        assert_eq!(make("up:1"), (Some(0), "Question 2 Question 1".to_owned()));
        assert_eq!(make("up:0"), (Some(0), "Question 2 Question 1".to_owned()));
        assert_eq!(make("copy:0"), (Some(1), "Question 2 Question 2 Question 1".to_owned()));
        assert_eq!(make("down:1"), (Some(2), "Question 2 Question 1 Question 2".to_owned()));
        assert_eq!(make("down:2").0, Some(2));
        assert_eq!(make("remove:2"), (Some(1), "Question 2 Question 1".to_owned()));
        for nothing in ["up:9", "remove:-1", "remove:", "save", ""] {
            assert_eq!(make(nothing), (None, "Question 2 Question 1".to_owned()), "{nothing}");
        }
        assert_eq!(make("remove:0").0, Some(0));
        assert_eq!(make("remove:0"), (None, String::new()));
        let names: Vec<_> = (0..200).filter_map(|_| draft.change(Change::Add, "text")).collect();
        assert_eq!((names.len(), draft.questions.len()), (QUESTIONS_MAX, QUESTIONS_MAX));
    }
}
