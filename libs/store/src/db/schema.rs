//! Whether the schema of the database fits this program. Services never migrate; they refuse a schema that is older than
//! their own or more than one release newer. Decision: `libs/store/docs/0007-releases-of-the-schema.md`.

use domain::Transient as _;

use super::conn::{Conn, acquire};
use super::migrations::{MIGRATOR, MigrationState, list_migrations};
use super::pool::Db;
use crate::Error;

/// The release of this program's schema: the last one that its migrations insert into `schema_releases`.
pub const SCHEMA_RELEASE: i32 = 2;

/// A release of the schema, as the database records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaRelease {
    /// Counts releases.
    pub release: i32,
    /// As operators know it, such as `0.1`.
    pub name: String,
}

/// Why this program must not work on the database. The text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaMismatch {
    /// Migrations of this program are not applied.
    #[error("the database {}: run `webruntime migrate`", describe_older(*applied, *needed))]
    Older {
        /// The newest migration of the database; `None` if it has none.
        applied: Option<i64>,
        /// The newest migration of this program; if the database has that, the newest one that it lacks.
        needed: i64,
    },
    /// Programs more than one release newer have migrated the database.
    #[error(
        "the database has the schema of release {found}, but this program works only up to that of release {accepted}: start the programs of release {found}"
    )]
    Newer {
        /// The database's release.
        found: String,
        /// The newest release that this program accepts.
        accepted: String,
    },
    /// The database answers, but not with its schema.
    #[error(
        "the schema of the database can't be checked: {reason}; this program must be able to read the tables `_sqlx_migrations` and `schema_releases`"
    )]
    Unreadable {
        /// What the database said, or what is missing.
        reason: String,
    },
}

fn describe_older(applied: Option<i64>, needed: i64) -> String {
    match applied {
        None => format!("has no schema, this program needs {needed}"),
        Some(version) if version < needed => format!("has schema {version}, this program needs {needed}"),
        Some(_) => format!("lacks migration {needed}, which this program needs"),
    }
}

/// Returns why this program must not work on the database; `None` if it may.
///
/// # Errors
/// The database does not answer, or not now.
pub async fn find_schema_mismatch(db: &Db) -> Result<Option<SchemaMismatch>, Error> {
    let mut conn = acquire(db).await?;
    match compare(&mut conn).await {
        // It would say the same each time.
        Err(error) if error.is_rejected_statement() && !error.is_transient() => {
            Ok(Some(SchemaMismatch::Unreadable { reason: error.to_string() }))
        }
        compared => compared,
    }
}

async fn compare(conn: &mut Conn) -> Result<Option<SchemaMismatch>, Error> {
    let state = list_migrations(conn).await?;
    let older = find_older(&state);
    if older.is_some() {
        return Ok(older);
    }
    Ok(find_newer(&list_schema_releases(conn).await?))
}

/// Returns the releases of the database's schema in order; none if it is older than the first one that is recorded.
pub async fn list_schema_releases(conn: &mut Conn) -> Result<Vec<SchemaRelease>, Error> {
    let has_table: bool =
        sqlx::query_scalar("select to_regclass('schema_releases') is not null").fetch_one(&mut *conn).await?;
    if !has_table {
        return Ok(Vec::new());
    }
    let rows: Vec<(i32, String)> =
        sqlx::query_as("select release, name from schema_releases order by release").fetch_all(conn).await?;
    Ok(rows.into_iter().map(|(release, name)| SchemaRelease { release, name }).collect())
}

fn find_older(state: &MigrationState) -> Option<SchemaMismatch> {
    state.pending.last()?;
    let newest = MIGRATOR.iter().map(|file| file.version).max()?;
    let applied = state.applied.last().copied();
    // With all but an older one applied, the newest one is not what is missing.
    let needed =
        if applied.is_some_and(|applied| applied >= newest) { state.pending.last()?.version } else { newest };
    Some(SchemaMismatch::Older { applied, needed })
}

fn find_newer(releases: &[SchemaRelease]) -> Option<SchemaMismatch> {
    let Some(last) = releases.last() else {
        let reason = "no release is recorded in `schema_releases`".to_owned();
        return Some(SchemaMismatch::Unreadable { reason });
    };
    let newest_accepted = SCHEMA_RELEASE + 1;
    if last.release <= newest_accepted {
        return None;
    }
    // Without its row, the release is named by its number.
    let accepted = releases.iter().find(|one| one.release == newest_accepted);
    let accepted = accepted.map_or_else(|| format!("number {newest_accepted}"), |one| one.name.clone());
    Some(SchemaMismatch::Newer { found: last.name.clone(), accepted })
}
