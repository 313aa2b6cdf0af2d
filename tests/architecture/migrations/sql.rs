//! Splits SQL into statements, as far as the rules need it.

/// Returns the statements in lower case, without comments and with single spaces.
pub(super) fn statements(text: &str) -> Vec<String> {
    let (mut statements, mut current, mut rest) = (Vec::new(), String::new(), text);
    while let Some(next) = rest.chars().next() {
        let length = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if next == ';' {
            statements.push(std::mem::take(&mut current));
            1
        } else {
            let length = quoted_length(rest).unwrap_or(next.len_utf8());
            current.push_str(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    statements.push(current);
    let normalized = statements.iter().map(|one| one.split_whitespace().collect::<Vec<_>>().join(" "));
    normalized.map(|one| one.to_lowercase()).filter(|one| !one.is_empty()).collect()
}

/// Returns the length of the string at the beginning: `'…'`, or `$tag$…$tag$`.
fn quoted_length(text: &str) -> Option<usize> {
    let mark = if text.starts_with('\'') {
        "'"
    } else {
        let tag = text.strip_prefix('$')?.find('$')? + 2;
        let is_tag = text[1..tag - 1].chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
        is_tag.then_some(&text[..tag])?
    };
    let end = text[mark.len()..].find(mark)?;
    Some(end + 2 * mark.len())
}

/// Splits the actions of `alter table` at commas outside brackets.
pub(super) fn actions(text: &str) -> Vec<&str> {
    let (mut actions, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                actions.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    actions.push(text[start..].trim());
    actions
}

#[test]
fn statements_end_at_semicolons_outside_of_strings_and_comments() {
    let text = "-- One; two\nSELECT ';',\n 'it''s'; /* x; */ do $$ begin; end $$;\n";
    assert_eq!(statements(text), ["select ';', 'it''s'", "do $$ begin; end $$"]);
    assert_eq!(actions("add a numeric(1, 2), drop b"), ["add a numeric(1, 2)", "drop b"]);
}
