//! Folders: their names, and the resources that they contain.

use crate::FieldError;
use crate::field_error::check_length;
use crate::scopes::Resource;

/// Maximum length of a folder's name, in characters.
pub const NAME_CHARS_MAX: usize = 80;
/// Maximum length of a folder's description, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 500;
/// Maximum number of resources that one call moves.
pub const MOVES_MAX: usize = 200;

/// Validates a folder's name and description.
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

/// Validates the number of resources to move.
pub fn check_moves(count: usize) -> Vec<FieldError> {
    if (1..=MOVES_MAX).contains(&count) {
        return vec![];
    }
    let message = format!("resources must name 1 to {MOVES_MAX} things");
    vec![FieldError::new("resources", "count", message)]
}

/// Returns the kind of resource with this name in the API, or `None` if folders contain no such resources.
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
    fn one_call_moves_at_most_two_hundred_resources() {
        assert_eq!((check_moves(0).len(), check_moves(1).len()), (1, 0));
        assert_eq!((check_moves(200).len(), check_moves(201).len()), (0, 1));
    }
}
