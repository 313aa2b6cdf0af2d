//! Splits SQL into statements, in a form that rules can match.

/// Returns the statements of a file in lower case, with single spaces, and without comments, string contents and function
/// bodies.
pub(super) fn statements(sql: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut statement = String::new();
    let mut rest = sql;
    while let Some(char) = rest.chars().next() {
        let skipped = match char {
            '-' if rest.starts_with("--") => until(rest, 2, "\n"),
            '/' if rest.starts_with("/*") => until(rest, 2, "*/"),
            '\'' => until(rest, 1, "'"),
            '$' => dollar_quoted(rest),
            _ => None,
        };
        if let Some(skipped) = skipped {
            if char == '\'' || char == '$' {
                statement.push_str("''");
            }
            push_space(&mut statement);
            rest = &rest[skipped..];
            continue;
        }
        match char {
            ';' => end(&mut found, &mut statement),
            _ if char.is_whitespace() => push_space(&mut statement),
            // Quoted names match like others.
            '"' | '`' => {}
            _ => statement.extend(char.to_lowercase()),
        }
        rest = &rest[char.len_utf8()..];
    }
    end(&mut found, &mut statement);
    found
}

fn push_space(statement: &mut String) {
    if !statement.is_empty() && !statement.ends_with(' ') {
        statement.push(' ');
    }
}

fn end(found: &mut Vec<String>, statement: &mut String) {
    let text = statement.trim();
    if !text.is_empty() {
        found.push(text.to_owned());
    }
    statement.clear();
}

/// Returns the length of the text up to and including `terminator`, which is searched after `start`.
fn until(text: &str, start: usize, terminator: &str) -> Option<usize> {
    let body = text.get(start..)?;
    Some(body.find(terminator).map_or(text.len(), |at| start + at + terminator.len()))
}

/// Returns the length of a text in dollar quotes, such as `$$ … $$` or `$body$ … $body$`; `None` for a parameter like `$1`.
fn dollar_quoted(text: &str) -> Option<usize> {
    let tag_end = text.get(1..)?.find('$')? + 2;
    let tag = text.get(..tag_end)?;
    let is_tag = tag[1..tag_end - 1].chars().all(|char| char.is_ascii_alphabetic() || char == '_');
    if is_tag { until(text, tag_end, tag) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_function_bodies_are_left_out() {
        let sql = "-- a; b\nCREATE  TABLE \"t\" (a text default 'x;y'); /* ; */ select $1;\n\
                   create function f() returns int as $$ update t; $$ language sql;\nselect 2";
        let expected = [
            "create table t (a text default '' )",
            "select $1",
            "create function f() returns int as '' language sql",
            "select 2",
        ];
        assert_eq!(statements(sql), expected);
    }
}
