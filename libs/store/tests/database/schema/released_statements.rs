//! The statements of the last release still work on today's schema, because its programs run on it during an upgrade.

use std::path::PathBuf;

use serde::Deserialize;
use sqlx::{AssertSqlSafe, Column as _, Either, Executor as _, SqlSafeStr as _, TypeInfo as _};
use store::SCHEMA_RELEASE;

/// A file of `migrations/released`.
#[derive(Deserialize)]
struct Released {
    release: i32,
    name: String,
    statements: Vec<Statement>,
}

#[derive(Deserialize)]
struct Statement {
    sql: String,
    parameters: Vec<String>,
    /// Name, type, and whether it may be null.
    columns: Vec<(String, String, Option<bool>)>,
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations/released"))
}

/// The releases with programs that accept today's schema.
fn accepting_releases() -> Vec<Released> {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let lists = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let released = lists.map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap());
    released.filter(|released: &Released| released.release >= SCHEMA_RELEASE - 1).collect()
}

/// Returns a type's name as sqlx writes it at run time: `TextArray` in a list is `TEXT[]`.
fn runtime_name(listed: &str) -> String {
    let (element, array) = listed.strip_suffix("Array").map_or((listed, ""), |element| (element, "[]"));
    format!("{}{array}", element.to_uppercase())
}

/// Returns what the programs of the release would get otherwise than before, or `None` if the statement works.
async fn find_change(conn: &mut store::Conn, statement: &Statement) -> Option<String> {
    let described = match conn.describe(AssertSqlSafe(statement.sql.clone()).into_sql_str()).await {
        Ok(described) => described,
        Err(error) => return Some(error.to_string()),
    };
    let columns: Vec<_> =
        described.columns().iter().map(|column| (column.name(), column.type_info().name())).collect();
    let listed: Vec<_> =
        statement.columns.iter().map(|(name, kind, _)| (name.as_str(), runtime_name(kind))).collect();
    if columns.iter().map(|(name, kind)| (*name, (*kind).to_owned())).ne(listed.iter().cloned()) {
        return Some(format!("its columns were {listed:?} and are {columns:?}"));
    }
    let parameters: Vec<_> = match described.parameters() {
        Some(Either::Left(types)) => types.iter().map(|kind| kind.name().to_owned()).collect(),
        _ => Vec::new(),
    };
    let listed: Vec<_> = statement.parameters.iter().map(|kind| runtime_name(kind)).collect();
    if parameters != listed {
        return Some(format!("its parameters were {listed:?} and are {parameters:?}"));
    }
    let nullable = statement.columns.iter().enumerate().find(|(at, (name, _, was_nullable))| {
        // For `name!` and `name?` the program decides. There sqlx's guess may depend on the plan.
        !name.contains(['!', '?']) && *was_nullable == Some(false) && described.nullable(*at) == Some(true)
    });
    nullable.map(|(_, (name, ..))| format!("its column {name} was never null and may be null now"))
}

/// Returns the broken statements of a release on the database.
async fn find_broken(database: &store::Db, statements: &[Statement]) -> Vec<String> {
    let mut broken = Vec::new();
    for statement in statements {
        // A connection keeps what it knows of types and statements, so one is enough; an error leaves it usable.
        let mut conn = store::acquire(database).await.unwrap();
        if let Some(change) = find_change(&mut conn, statement).await {
            broken.push(format!(
                "{change}\n    {}",
                statement.sql.split_whitespace().collect::<Vec<_>>().join(" ")
            ));
        }
    }
    broken
}

/// Returns the name of a release as the database records it.
async fn recorded_name(database: &store::Db, release: i32) -> Option<String> {
    let mut conn = store::acquire(database).await.unwrap();
    let releases = store::list_schema_releases(&mut conn).await.unwrap();
    releases.into_iter().find(|one| one.release == release).map(|one| one.name)
}

#[tokio::test]
async fn every_statement_of_the_last_release_works_on_this_schema() {
    let database = sandbox::test::database().await;
    let accepting = accepting_releases();
    let last = accepting.iter().max_by_key(|released| released.release).unwrap();
    // While a release is being developed, the last list is that of the release before it.
    assert!((SCHEMA_RELEASE - 1..=SCHEMA_RELEASE).contains(&last.release), "{}", last.release);
    for released in accepting {
        let name = recorded_name(&database.db, released.release).await;
        assert_eq!(name.as_ref(), Some(&released.name), "the list is of a release that the schema records");
        assert!(released.statements.len() > 100, "the list of release {} is not complete", released.name);
        let broken = find_broken(&database.db, &released.statements).await;
        let count = broken.len();
        assert!(
            broken.is_empty(),
            "{count} statements of release {} don't work on this schema:\n{}",
            released.name,
            broken.join("\n")
        );
    }
}

#[tokio::test]
async fn a_change_that_breaks_a_released_statement_is_found() {
    let database = sandbox::test::database().await;
    let statement = || Statement {
        sql: "select id, label, expires_at from api_keys where account_id = $1".to_owned(),
        parameters: vec!["Uuid".to_owned()],
        columns: vec![
            ("id".to_owned(), "Uuid".to_owned(), Some(false)),
            ("label".to_owned(), "Text".to_owned(), Some(false)),
            ("expires_at".to_owned(), "Timestamptz".to_owned(), Some(true)),
        ],
    };
    assert_eq!(find_broken(&database.db, &[statement()]).await, Vec::<String>::new());
    for (change, found) in [
        ("alter table api_keys alter label drop not null", "its column label was never null"),
        ("alter table api_keys alter expires_at type timestamp", "its columns were"),
        ("alter table api_keys rename label to name", "column \"label\" does not exist"),
    ] {
        // A database of its own: a connection with a cached plan reports that instead.
        let database = sandbox::test::database().await;
        store::execute_raw(&database.db, change).await.unwrap();
        let database = &database.db;
        let broken = find_broken(database, &[statement()]).await;
        assert!(broken.len() == 1 && broken[0].contains(found), "{change}: {broken:?}");
        assert!(broken[0].contains("select id, label"), "it names the statement: {broken:?}");
    }
}
