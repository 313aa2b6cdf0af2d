//! The rules of a migration.

use super::sql::{actions, statements};

/// A release in the list of statements.
pub(super) struct Release {
    pub(super) number: i32,
    pub(super) name: String,
    /// The last migration of this release.
    pub(super) schema: i64,
}

/// A migration file.
pub(super) struct Migration {
    pub(super) version: i64,
    name: String,
    text: String,
}

impl Migration {
    /// `None` if the file's name has no number.
    pub(super) fn new(path: &str, text: String) -> Option<Self> {
        let name = path.rsplit('/').next()?.to_owned();
        let version = name.split('_').next()?.parse().ok()?;
        Some(Self { version, name, text })
    }

    /// Returns what is wrong with the file.
    pub(super) fn violations(&self, releases: &[Release]) -> Vec<String> {
        let statements = statements(&self.text);
        let created: Vec<String> = statements.iter().filter_map(|one| created_table(one)).collect();
        let mut found = Vec::new();
        let (mut has_timeout, mut needs_contract) = (false, None);
        let is_without_transaction = self.text.starts_with("-- no-transaction\n");
        for statement in &statements {
            if statement.starts_with("set local lock_timeout") {
                has_timeout = true;
                continue;
            }
            needs_contract = needs_contract.or_else(|| breaking_change(statement, &created));
            let index = Index::of(statement).filter(|index| !created.contains(&index.table));
            if let Some(index) = &index
                && !index.is_concurrent
            {
                found.push(format!(
                    "create the index on {} CONCURRENTLY, in a file of its own that begins with the line `-- no-transaction`",
                    index.table
                ));
            }
            let is_concurrent = statement.contains(" index concurrently ");
            if is_concurrent && (!is_without_transaction || statements.len() > 1) {
                found.push(
                    "CONCURRENTLY needs a file of its own that begins with the line `-- no-transaction`"
                        .to_owned(),
                );
            }
            if let Some(table) = locked_table(statement, &created)
                && !has_timeout
                && !is_without_transaction
            {
                found.push(format!(
                    "begin with `set local lock_timeout = '5s';`: while {table} waits for its lock, every later statement waits"
                ));
            }
        }
        found.extend(self.contract_violation(needs_contract, releases));
        found.into_iter().map(|text| format!("{}: {text}", self.name)).collect()
    }

    fn contract_violation(&self, change: Option<String>, releases: &[Release]) -> Option<String> {
        let change = change?;
        let line = self.text.lines().find_map(|line| line.strip_prefix("-- contract: "));
        let Some(contract) = line.map(|line| line.split([':', ' ']).next().unwrap_or_default()) else {
            return Some(format!(
                "`{change}` breaks programs that need what it removes or forbids: write `-- contract: RELEASE` with the \
                 last release that needs it, or `-- contract: none`"
            ));
        };
        let previous =
            releases.iter().rfind(|release| release.schema < self.version).map_or(0, |one| one.number);
        let needed_by = releases.iter().find(|release| release.name == contract);
        let is_allowed = contract == "none" || needed_by.is_some_and(|release| release.number < previous);
        (!is_allowed).then(|| {
            format!(
                "`-- contract: {contract}` must name a release before the last one: the last one's programs run during the upgrade"
            )
        })
    }
}

/// Returns the releases after which no migration begins the next one.
pub(super) fn missing_releases(migrations: &[Migration], releases: &[Release]) -> Vec<String> {
    let missing = releases.iter().filter_map(|release| {
        let first = migrations.iter().find(|migration| migration.version > release.schema)?;
        let row = format!("insert into schema_releases (release, name) values ({},", release.number + 1);
        let is_begun = statements(&first.text).iter().any(|statement| statement.starts_with(&row));
        (!is_begun).then(|| {
            format!("{}: the first migration after release {} must run `{row} …)`", first.name, release.name)
        })
    });
    missing.collect()
}

/// Returns the migrations that have the number of another one, as two branches that were merged may. sqlx applies one of them
/// and then fails at the other.
pub(super) fn shared_versions(migrations: &[Migration]) -> Vec<String> {
    let pairs = migrations.windows(2).filter(|pair| pair[0].version == pair[1].version);
    pairs
        .map(|pair| format!("{} has the number of {}: give it one of its own", pair[1].name, pair[0].name))
        .collect()
}

/// Returns the words after `prefix`.
fn after<'a>(statement: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = statement.strip_prefix(prefix)?.strip_prefix(' ')?;
    Some(rest.strip_prefix("if exists ").or_else(|| rest.strip_prefix("if not exists ")).unwrap_or(rest))
}

fn first_word(text: &str) -> &str {
    text.split([' ', '(', ',']).next().unwrap_or_default()
}

fn created_table(statement: &str) -> Option<String> {
    Some(first_word(after(statement, "create table")?).to_owned())
}

struct Index {
    table: String,
    is_unique: bool,
    is_concurrent: bool,
}

impl Index {
    fn of(statement: &str) -> Option<Self> {
        let is_unique = statement.starts_with("create unique index ");
        if !is_unique && !statement.starts_with("create index ") {
            return None;
        }
        let (_, on) = statement.split_once(" on ")?;
        let table = first_word(on.strip_prefix("only ").unwrap_or(on)).to_owned();
        Some(Self { table, is_unique, is_concurrent: statement.contains(" index concurrently ") })
    }
}

/// Returns the part of the statement that programs of the last release may not survive.
fn breaking_change(statement: &str, created: &[String]) -> Option<String> {
    let is_created = |table: &str| created.iter().any(|one| one == table);
    if let Some(rest) = after(statement, "alter table") {
        let rest = rest.strip_prefix("only ").unwrap_or(rest);
        let table = first_word(rest);
        if is_created(table) {
            return None;
        }
        let found = actions(rest[table.len()..].trim()).into_iter().find(|action| breaks(action));
        return found.map(str::to_owned);
    }
    let is_unique_index =
        Index::of(statement).is_some_and(|index| index.is_unique && !is_created(&index.table));
    let is_breaking = statement.starts_with("drop ")
        || statement.starts_with("truncate ")
        || statement.starts_with("alter ") && statement.contains(" rename ")
        || statement.starts_with("alter type ")
        || is_unique_index;
    is_breaking.then(|| statement.chars().take(80).collect())
}

/// Returns whether an action of `alter table` may break programs that know nothing of it.
fn breaks(action: &str) -> bool {
    let words: Vec<&str> = action.split(' ').collect();
    let constraint = ["constraint", "check", "unique", "foreign", "primary", "exclude"];
    match words.as_slice() {
        ["drop" | "rename", ..] => true,
        ["add", kind, ..] if constraint.iter().any(|one| kind.starts_with(one)) => true,
        ["add", ..] => action.contains(" not null") && !action.contains(" default "),
        ["alter", "column", _, change @ ..] | ["alter", _, change @ ..] => {
            matches!(
                change,
                ["type", ..] | ["set", "data", ..] | ["set", "not", ..] | ["drop", "default", ..]
            )
        }
        _ => false,
    }
}

/// Returns the existing table that the statement locks against others.
fn locked_table(statement: &str, created: &[String]) -> Option<String> {
    let is_existing = |table: &&str| !created.iter().any(|one| one == table);
    let table = if let Some(rest) = after(statement, "alter table") {
        first_word(rest.strip_prefix("only ").unwrap_or(rest))
    } else if statement.starts_with("create table ") {
        // The foreign key's triggers need a lock of the table that it references.
        let references = statement.split(" references ").skip(1).map(first_word);
        return references.map(str::to_owned).find(|table| is_existing(&table.as_str()));
    } else if statement.starts_with("drop ") && !statement.contains(" concurrently ") {
        statement.split(' ').next_back()?
    } else if statement.starts_with("create ") && statement.contains(" trigger ") {
        first_word(statement.split_once(" on ")?.1)
    } else {
        return None;
    };
    Some(table).filter(is_existing).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn releases() -> Vec<Release> {
        [(1, "0.1", 190), (2, "0.2", 200), (3, "0.3", 210)]
            .map(|(number, name, schema)| Release { number, name: name.to_owned(), schema })
            .into()
    }

    fn migration(version: i64, text: &str) -> Migration {
        Migration::new(&format!("migrations/postgres/{version:04}_x.sql"), text.to_owned()).unwrap()
    }

    /// The violations of a migration of the release after 0.3.
    fn found(text: &str) -> String {
        migration(211, text).violations(&releases()).join("\n")
    }

    const TIMEOUT: &str = "set local lock_timeout = '5s';\n";

    #[test]
    fn additions_are_allowed() {
        for text in [
            "alter table forms add colour text;",
            "alter table forms add column colour text not null default 'red', alter name drop not null;",
            "create table a (id uuid primary key, form_id uuid references forms); create unique index b on a (id);
             alter table a add constraint c check (true), drop id; create index on a (form_id);",
            "insert into forms values ('drop table forms; alter table forms drop x')",
            "create or replace view things as select 1",
        ] {
            assert_eq!(found(&format!("{TIMEOUT}{text}")), "", "{text}");
        }
        assert_eq!(found("-- no-transaction\ncreate index concurrently a on forms (id);"), "");
    }

    #[test]
    fn what_the_last_release_may_not_survive_needs_a_contract() {
        for text in [
            "drop table forms",
            "drop index forms_account",
            "truncate forms",
            "alter table forms drop column name",
            "alter table if exists forms drop name",
            "alter table forms rename name to title",
            "alter table forms rename to shapes",
            "alter view things rename to items",
            "alter type mood add value 'x'",
            "alter table forms alter name set not null",
            "alter table forms alter column name type varchar(9)",
            "alter table forms alter name set data type text",
            "alter table forms alter name drop default",
            "alter table forms add colour text, drop name",
            "alter table forms add colour text not null",
            "alter table forms add constraint c check (name <> '') not valid",
            "alter table forms add check(name <> '')",
            "ALTER TABLE forms\n  DROP name -- why",
        ] {
            let text = format!("{TIMEOUT}{text};");
            assert!(found(&text).contains("write `-- contract: RELEASE`"), "{text}: {}", found(&text));
            for allowed in ["0.1", "0.2", "0.2: its programs show the name", "none"] {
                assert_eq!(found(&format!("-- contract: {allowed}\n{text}")), "", "{text}");
            }
            for refused in ["0.3", "0.9", "x"] {
                let refused = found(&format!("-- contract: {refused}\n{text}"));
                assert!(refused.contains("must name a release before the last one"), "{text}: {refused}");
            }
        }
    }

    #[test]
    fn a_lock_of_an_existing_table_needs_a_timeout_before_it() {
        for text in [
            "alter table forms add colour text;",
            "create table a (form_id uuid references forms);",
            "-- contract: none\ndrop table forms;",
            "create trigger t after insert on forms execute function f();",
        ] {
            assert!(found(text).contains("begin with `set local lock_timeout"), "{text}: {}", found(text));
            assert!(found(&format!("{text}\n{TIMEOUT}")).contains("begin with"), "after it: {text}");
            assert_eq!(found(&format!("{TIMEOUT}{text}")), "", "{text}");
        }
        assert_eq!(found("create table a (id uuid); alter table a add b uuid references a;"), "");
    }

    #[test]
    fn an_index_on_an_existing_table_is_created_concurrently_and_alone() {
        let plain = format!("{TIMEOUT}create index a on forms (id);");
        assert!(found(&plain).contains("create the index on forms CONCURRENTLY"), "{}", found(&plain));
        for text in [
            "create index concurrently a on forms (id);",
            "-- Why.\n-- no-transaction\ncreate index concurrently a on forms (id);",
            "-- no-transaction\ncreate index concurrently a on forms (id); select 1;",
        ] {
            assert!(found(text).contains("CONCURRENTLY needs a file of its own"), "{text}: {}", found(text));
        }
        let unique = "-- no-transaction\ncreate unique index concurrently a on forms (name);";
        assert!(found(unique).contains("-- contract"), "old programs insert duplicates: {}", found(unique));
    }

    #[test]
    fn the_first_migration_after_a_release_begins_the_next_one() {
        let begin = "insert into schema_releases (release, name) values (4, '0.4');";
        let all = |text| vec![migration(210, ""), migration(211, text), migration(212, "")];
        let missing = |migrations: &[Migration]| missing_releases(migrations, &releases()[2..]).join("\n");
        assert_eq!(missing(&all(begin)), "");
        assert_eq!(missing(&all("")[..1]), "", "nothing follows so far");
        assert!(missing(&all("")).starts_with("0211_x.sql: the first migration after release 0.3 must run"));
    }

    #[test]
    fn each_migration_has_a_number_of_its_own() {
        let twice = [migration(210, ""), migration(211, ""), migration(211, "")];
        assert!(shared_versions(&twice[..2]).is_empty());
        assert_eq!(
            shared_versions(&twice),
            ["0211_x.sql has the number of 0211_x.sql: give it one of its own"]
        );
    }
}
