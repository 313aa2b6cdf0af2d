//! The schema's version beside the program's.

use store::Db;
use warehouse::Warehouse;

use super::finding::Finding;
use crate::migrations;

/// Checks that both databases have the schema of this program.
pub async fn check_schema(db: &Db, warehouse: &Warehouse) -> Finding {
    let plan = match migrations::plan(db, warehouse).await {
        Ok(plan) => plan,
        Err(error) => {
            let advice = "first make both databases reachable";
            return Finding::failed("schema", format!("{error:#}"), advice);
        }
    };
    let pending = plan.postgres.len() + plan.clickhouse.len();
    if !plan.edited.is_empty() {
        let advice = "the database was migrated by a build that was never released; restore a backup";
        let detail = format!("applied with another text than this program's: {}", plan.edited.join(", "));
        return Finding::failed("schema", detail, advice);
    }
    if plan.is_newer() {
        if let Ok(Some(mismatch)) = store::find_schema_mismatch(db).await {
            let advice = "use the programs of that release, this one included";
            return Finding::failed("schema", mismatch.to_string(), advice);
        }
        let advice = "use the program of the newer release; its services accept one release more";
        let detail = format!("a newer release has migrated: {}", plan.unknown.join(", "));
        return Finding::warning("schema", detail, advice);
    }
    match pending {
        0 => Finding::ok("schema", "that of this program"),
        1 => Finding::failed("schema", "1 migration is pending", "run `webruntime migrate`"),
        _ => {
            let detail = format!("{pending} migrations are pending");
            Finding::failed("schema", detail, "run `webruntime migrate`; with --plan it lists them")
        }
    }
}
