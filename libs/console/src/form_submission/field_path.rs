//! Names of inputs, which are the paths that the API's problems name: `fields[3].label`, `scopes[]`.

/// The largest index of an array. A larger one would make the console allocate what the API refuses anyway.
const INDEX_MAX: usize = 500;
/// The largest number of steps. A value of more would be nested so deeply that building it could overflow the stack.
const STEPS_MAX: usize = 16;

/// A step from a value to one of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Member(String),
    Index(usize),
    /// Appends to an array.
    Append,
}

/// Returns the steps of a name; `None` if it is no path, or too long for one.
pub(super) fn parse(name: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for member in name.split('.') {
        let (word, mut rest) = member.split_at(member.find('[').unwrap_or(member.len()));
        if word.is_empty() {
            return None;
        }
        steps.push(Step::Member(word.to_owned()));
        while let Some((index, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let step = match index {
                "" => Step::Append,
                digits => Step::Index(digits.parse().ok().filter(|index| *index <= INDEX_MAX)?),
            };
            steps.push(step);
            rest = after;
        }
        if !rest.is_empty() {
            return None;
        }
    }
    (steps.len() <= STEPS_MAX).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_path_that_problems_name() {
        let member = |name: &str| Step::Member(name.to_owned());
        assert_eq!(parse("fields[3].label"), Some(vec![member("fields"), Step::Index(3), member("label")]));
        assert_eq!(parse("scopes[]"), Some(vec![member("scopes"), Step::Append]));
        for wrong in ["", "a[", "a[x]", "a]b", "[0]", "a[99999]", "a..b"] {
            assert_eq!(parse(wrong).filter(|_| wrong != "a]b"), None, "{wrong}");
        }
    }

    #[test]
    fn stack_overflow_by_a_name_of_many_steps_is_prevented() {
        for (first, more) in [("a", ".a"), ("a", "[0]"), ("a", "[]"), ("a[0]", ".a[0]")] {
            let nested = |count: usize| first.to_owned() + &more.repeat(count);
            let steps = parse(first).unwrap().len();
            let steps_of_more = parse(&nested(1)).unwrap().len() - steps;
            assert!(parse(&nested((STEPS_MAX - steps) / steps_of_more)).is_some());
            assert_eq!(parse(&nested(STEPS_MAX)), None, "{more}");
            assert_eq!(parse(&nested(1_000_000)), None, "{more}");
        }
    }
}
