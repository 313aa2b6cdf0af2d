//! Folders: what one may be called, and what lies in them.

use crate::FieldError;
use crate::field_error::check_length;
use crate::scopes::Resource;

/// Characters of a folder's name.
pub const NAME_CHARS_MAX: usize = 80;
/// Characters of its description.
pub const DESCRIPTION_CHARS_MAX: usize = 500;
/// Most things moved by one call.
pub const MOVES_MAX: usize = 200;

/// What is wrong with a folder's name and description; nothing if it may be stored.
pub fn check(name: Option<&str>, description: Option<&str>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(name) = name {
        check_length(&mut errors, "name", name.trim(), 1, NAME_CHARS_MAX);
    }
    if let Some(description) = description {
        check_length(&mut errors, "description", description, 0, DESCRIPTION_CHARS_MAX);
    }
    errors
}

/// What is wrong with the number of things to move.
pub fn check_moves(count: usize) -> Vec<FieldError> {
    if (1..=MOVES_MAX).contains(&count) {
        return vec![];
    }
    let message = format!("resources must name 1 to {MOVES_MAX} things");
    vec![FieldError::new("resources", "count", message)]
}

/// The kind that an API call calls by this word, if such things lie in folders.
pub fn kind(word: &str) -> Option<Resource> {
    match word {
        "form" => Some(Resource::Forms),
        "page" => Some(Resource::Pages),
        "analytics" => Some(Resource::Analytics),
        "automation" => Some(Resource::Automations),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_descriptions_are_bounded() {
        assert_eq!(check(Some("Client A"), Some("")), vec![]);
        assert_eq!(check(Some(&"x".repeat(80)), Some(&"x".repeat(500))), vec![]);
        assert_eq!(check(Some(""), None)[0].code, "required");
        assert_eq!(check(Some(&"x".repeat(81)), None)[0].field, "name");
        assert_eq!(check(None, Some(&"x".repeat(501)))[0].field, "description");
        assert_eq!(check(Some("a\0b"), None)[0].code, "nul");
    }

    #[test]
    fn one_call_moves_at_most_two_hundred_things() {
        assert_eq!((check_moves(0).len(), check_moves(1).len()), (1, 0));
        assert_eq!((check_moves(200).len(), check_moves(201).len()), (0, 1));
    }
}
