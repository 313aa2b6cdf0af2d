//! The same tables on many servers: each replicated within its shard, and above them one of the same name that knows
//! all shards and puts a site's rows on one of them, so that nothing about a site ever needs two.

/// A statement of a migration as a cluster must be told; `None` for one of a kind that isn't known here.
///
/// A table `t` becomes `t_local`, and `t` the way to all of them. Names in braces are the servers' own macros.
pub(super) fn rendered(statement: &str, cluster: &str) -> Option<Vec<String>> {
    let told = without_comments(statement);
    if let Some(rest) = told.strip_prefix("CREATE TABLE IF NOT EXISTS ") {
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
    let (table, change) = told.strip_prefix("ALTER TABLE ")?.split_once(char::is_whitespace)?;
    let alter = |table: &str| format!("ALTER TABLE {table} ON CLUSTER '{cluster}' {}", change.trim_start());
    Some(vec![alter(&format!("{table}_local")), alter(table)])
}

/// `MergeTree …` as `ReplicatedMergeTree('…', '{replica}') …`, which remembers tokens by a setting of another name.
fn replicated(engine: &str, table: &str) -> Option<String> {
    let name_ends = engine.find(|letter: char| !letter.is_ascii_alphanumeric())?;
    let (name, rest) = engine.split_at(name_ends);
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
    use crate::migrations::{FILES, statements};

    #[test]
    fn a_table_is_replicated_in_its_shard_and_reached_through_one_that_knows_all() {
        let statement = "-- Why.\nCREATE TABLE IF NOT EXISTS sessions\n(\n    site_id UUID\n)\n\
                         ENGINE = ReplacingMergeTree(version, deleted)\nORDER BY site_id";
        let [local, all] = <[String; 2]>::try_from(rendered(statement, "main").unwrap()).unwrap();
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

    #[test]
    fn every_statement_there_is_has_a_form_for_clusters() {
        for (file, sql) in FILES {
            for statement in statements(sql) {
                let rendered = rendered(statement, "main").unwrap_or_else(|| panic!("{file}: {statement}"));
                assert!(rendered.iter().all(|told| told.contains(" ON CLUSTER 'main' ")), "{rendered:?}");
                assert!(!rendered.iter().any(|told| told.contains("non_replicated")), "{rendered:?}");
            }
        }
        assert_eq!(rendered("OPTIMIZE TABLE events", "main"), None);
    }

    /// There is no server to run them on without a keeper; that the engine understands them can be known.
    #[tokio::test]
    async fn the_engine_understands_every_statement() {
        let clickhouse = sandbox::test::clickhouse().await;
        let client = clickhouse::Client::default().with_url(&clickhouse.url).with_user(&clickhouse.user);
        let client = client.with_password(&clickhouse.password);
        for told in FILES
            .iter()
            .flat_map(|(_, sql)| statements(sql))
            .filter_map(|one| rendered(one, "main"))
            .flatten()
        {
            let formatted =
                client.query("SELECT formatQuery(?)").bind(told).fetch_one::<String>().await.unwrap();
            assert!(formatted.contains("ON CLUSTER main"), "{formatted}");
        }
    }
}
