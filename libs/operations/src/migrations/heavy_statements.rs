//! Recognizes statements of a migration that take as long as a table is large, or that block writes to it meanwhile.

use std::collections::BTreeSet;

use super::sql_statements::statements;

/// Defaults that Postgres computes for each row, so that adding such a column rewrites the table.
const VOLATILE_DEFAULTS: [&str; 4] = ["gen_random_uuid(", "random(", "clock_timestamp(", "nextval("];

/// Returns what is heavy in a migration, such as `alter table forms: rewrites the table`. Statements about tables that the
/// migration itself creates are not: those are empty.
pub(super) fn heavy_statements(sql: &str) -> Vec<String> {
    let mut created = BTreeSet::new();
    let mut heavy = Vec::new();
    for statement in statements(sql) {
        let words: Vec<&str> = statement.split([' ', '(', ',']).filter(|word| !word.is_empty()).collect();
        if let Some(table) = created_table(&words) {
            created.insert(table.to_owned());
        } else if let Some((head, table, effect)) = effect_of(&statement, &words)
            && !created.contains(table)
        {
            heavy.push(format!("{head} {table}: {effect}"));
        }
    }
    heavy.dedup();
    heavy
}

fn created_table<'a>(words: &[&'a str]) -> Option<&'a str> {
    let is_create = words.first() == Some(&"create");
    let kind = words.iter().position(|word| *word == "table").filter(|at| is_create && *at <= 2)?;
    after(words, kind + 1)
}

/// Returns the first word from `at` on that is a name.
fn after<'a>(words: &[&'a str], at: usize) -> Option<&'a str> {
    let noise = ["if", "not", "exists", "only", "concurrently"];
    words.get(at..)?.iter().find(|word| !noise.contains(word)).copied()
}

/// Returns the beginning of a heavy statement, its table, and what it does.
fn effect_of<'a>(statement: &str, words: &[&'a str]) -> Option<(&'static str, &'a str, &'static str)> {
    let has = |part: &str| statement.contains(part);
    let word_after = |word: &str| after(words, words.iter().position(|other| *other == word)? + 1);
    let first = *words.first()?;
    match first {
        "create" if words.iter().take(3).any(|word| *word == "index") => {
            let effect = if has(" concurrently ") {
                "builds an index, while writes go on"
            } else {
                "builds an index, and writes to the table wait for it"
            };
            Some(("create index on", word_after("on")?, effect))
        }
        "alter" if words.get(1) == Some(&"table") => {
            Some(("alter table", after(words, 2)?, alteration(&has)?))
        }
        "update" => Some(("update", after(words, 1)?, "changes its rows")),
        "delete" => Some(("delete from", word_after("from")?, "changes its rows")),
        "insert" if has(" select ") => Some(("insert into", word_after("into")?, "copies rows into it")),
        "with" if has("update ") || has("delete from ") || has("insert into ") => {
            Some(("with …", "", "changes rows"))
        }
        "vacuum" | "cluster" | "reindex" | "refresh" | "optimize" => {
            Some(("maintenance:", first, "rewrites tables or indexes"))
        }
        _ => None,
    }
}

fn alteration(has: &impl Fn(&str) -> bool) -> Option<&'static str> {
    let rewrites = "rewrites the table, and nothing can use it meanwhile";
    let reads = "reads the whole table, and writes to it wait meanwhile";
    let adds_constraint =
        [" add constraint ", " add check ", " add foreign key ", " add unique ", " add primary key "];
    let is_mutation = has(" materialize ") || has(" modify ttl ") || has(" modify column ");
    if VOLATILE_DEFAULTS.iter().any(|default| has(default)) && has(" add ") {
        return Some(rewrites);
    }
    match () {
        () if is_mutation || has(" delete where ") || has(" update ") && has(" where ") => {
            Some("rewrites parts of the table in the background")
        }
        () if has(" alter ") && has(" type ") => Some(rewrites),
        () if has(" stored") && has(" generated ") => Some(rewrites),
        () if has(" set not null") => Some(reads),
        () if has(" validate constraint ") => Some("reads the whole table, while writes go on"),
        () if !has(" not valid") && adds_constraint.iter().any(|add| has(add)) => Some(reads),
        () if has(" add column ") && has(" check ") => Some(reads),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_about_existing_tables_are_heavy_by_their_effect() {
        let cases = [
            ("create index a on forms (id)", "create index on forms: builds an index, and writes"),
            (
                "create unique index concurrently a on forms (id)",
                "create index on forms: builds an index, while",
            ),
            ("alter table forms alter column a type bigint", "alter table forms: rewrites the table"),
            (
                "alter table if exists forms add b uuid default gen_random_uuid()",
                "alter table forms: rewrites",
            ),
            ("alter table forms add b int generated always as (a + 1) stored", "alter table forms: rewrites"),
            ("alter table only forms alter a set not null", "alter table forms: reads the whole table, and"),
            (
                "alter table forms add constraint c check (a > 0)",
                "alter table forms: reads the whole table, and",
            ),
            ("alter table forms validate constraint c", "alter table forms: reads the whole table, while"),
            ("update forms set a = 1", "update forms: changes its rows"),
            ("delete from forms where a = 1", "delete from forms: changes its rows"),
            ("insert into forms (a) select a from other", "insert into forms: copies rows"),
            ("with x as (select 1) update forms set a = 1", "with … : changes rows"),
            ("ALTER TABLE events DELETE WHERE a = 1", "alter table events: rewrites parts"),
        ];
        for (sql, expected) in cases {
            let found = heavy_statements(sql);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{sql}: {found:?}");
        }
    }

    #[test]
    fn statements_that_take_no_time_are_not_heavy() {
        for sql in [
            "alter table forms add column a text",
            "alter table forms add column a text not null default 'x'",
            "alter table forms add constraint c check (a > 0) not valid",
            "create table t (a int); create index i on t (a); insert into t select 1; alter table t add check (a > 0)",
            "create function f() returns int as $$ update forms set a = 1 $$ language sql",
            "ALTER TABLE events ADD COLUMN IF NOT EXISTS a String",
            "drop index forms_a",
        ] {
            assert_eq!(heavy_statements(sql), Vec::<String>::new(), "{sql}");
        }
    }
}
