//! Adapts migrations to a cluster: each table is replicated within its shard, and a distributed table of the same name
//! routes the rows of a site to one shard, so that no query about a site needs two.

/// Returns the statements for a cluster, or `None` for an unsupported kind of statement.
///
/// A table `t` becomes `t_local`, and `t` the distributed table. Names in braces are macros of the servers.
pub(super) fn for_cluster(statement: &str, cluster: &str) -> Option<Vec<String>> {
    let statement = without_comments(statement);
    if let Some(rest) = statement.strip_prefix("CREATE TABLE IF NOT EXISTS ") {
        let (table, rest) = rest.split_once(char::is_whitespace)?;
        let (columns, engine) = rest.split_once("ENGINE = ")?;
        let engine = replicated(engine, table)?;
        return Some(vec![
            format!(
                "CREATE TABLE IF NOT EXISTS {table}_local ON CLUSTER '{cluster}' {columns}ENGINE = {engine}"
            ),
            format!(
                "CREATE TABLE IF NOT EXISTS {table} ON CLUSTER '{cluster}' AS {table}_local \
                 ENGINE = Distributed('{cluster}', currentDatabase(), {table}_local, cityHash64(site_id))"
            ),
        ]);
    }
    let (table, change) = statement.strip_prefix("ALTER TABLE ")?.split_once(char::is_whitespace)?;
    let alter = |table: &str| format!("ALTER TABLE {table} ON CLUSTER '{cluster}' {}", change.trim_start());
    Some(vec![alter(&format!("{table}_local")), alter(table)])
}

/// Turns `MergeTree …` into `ReplicatedMergeTree('…', '{replica}') …`. Its deduplication setting has another name.
fn replicated(engine: &str, table: &str) -> Option<String> {
    let name_end = engine.find(|letter: char| !letter.is_ascii_alphanumeric())?;
    let (name, rest) = engine.split_at(name_end);
    let (arguments, rest) = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map(|(arguments, rest)| (format!(", {arguments}"), rest))?,
        None => (String::new(), rest),
    };
    let rest = rest.replace("non_replicated_deduplication_window", "replicated_deduplication_window");
    let path = format!("/clickhouse/tables/{{database}}/{{shard}}/{table}");
    Some(format!("Replicated{name}('{path}', '{{replica}}'{arguments}){rest}"))
}

fn without_comments(statement: &str) -> String {
    let lines = statement.lines().filter(|line| !line.trim_start().starts_with("--"));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_replicated_in_its_shard_and_reached_through_a_distributed_one() {
        let statement = "-- Why.\nCREATE TABLE IF NOT EXISTS sessions\n(\n    site_id UUID\n)\n\
                         ENGINE = ReplacingMergeTree(version, deleted)\nORDER BY site_id";
        let [local, all] = <[String; 2]>::try_from(for_cluster(statement, "main").unwrap()).unwrap();
        assert_eq!(
            local,
            "CREATE TABLE IF NOT EXISTS sessions_local ON CLUSTER 'main' (\n    site_id UUID\n)\n\
             ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{database}/{shard}/sessions', '{replica}', \
             version, deleted)\nORDER BY site_id"
        );
        assert_eq!(
            all,
            "CREATE TABLE IF NOT EXISTS sessions ON CLUSTER 'main' AS sessions_local \
             ENGINE = Distributed('main', currentDatabase(), sessions_local, cityHash64(site_id))"
        );
    }
}
