//! An account that has one of everything: a row in every table that can hold account data, in both stores, made
//! from what the stores say of their tables. A new table is filled, and searched, without anybody's doing.

use std::collections::{BTreeMap, BTreeSet};

use domain::months::month_of;
use sandbox::test::{TestClickHouse, TestDatabase};
use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use crate::harness::{new_id, now};

/// A row, as Postgres gives it in JSON.
type Filled = Map<String, Value>;

/// Tables that refer to accounts, straight or over others, and those that name an account without a reference.
const OF_ACCOUNTS: &str = "
    with recursive related as (
        select 'accounts'::regclass as id
        union select c.conrelid from pg_constraint c join related r on c.confrelid = r.id where c.contype = 'f')
    select id::text from related
    union select a.attrelid::regclass::text from pg_attribute a join pg_class c on c.oid = a.attrelid
    where c.relkind = 'r' and a.attname = 'account_id' and c.relnamespace = 'public'::regnamespace";

/// What must be known of a table's columns to fill them.
const COLUMNS: &str = "
    select a.attname, a.atttypid::regtype::text as kind,
           a.attnotnull and not a.atthasdef and a.attidentity = '' as needed,
           (select f.confrelid::regclass::text from pg_constraint f
            where f.contype = 'f' and f.conrelid = a.attrelid and f.conkey = array[a.attnum]) as refers_to,
           (select b.attname from pg_constraint f
            join pg_attribute b on b.attrelid = f.confrelid and b.attnum = f.confkey[1]
            where f.contype = 'f' and f.conrelid = a.attrelid and f.conkey = array[a.attnum]) as refers_by,
           (select pg_get_constraintdef(k.oid) from pg_constraint k
            where k.contype = 'c' and k.conrelid = a.attrelid and k.conkey = array[a.attnum] limit 1) as rule
    from pg_attribute a where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped";

/// An account with one of everything.
pub(crate) struct FilledAccount<'a> {
    pub(crate) id: Uuid,
    /// Stands in every text of its rows.
    marker: String,
    /// Its rows, by table.
    rows: BTreeMap<String, Filled>,
    tables: BTreeSet<String>,
    database: &'a TestDatabase,
    clickhouse: &'a TestClickHouse,
}

impl<'a> FilledAccount<'a> {
    pub(crate) async fn new(database: &'a TestDatabase, clickhouse: &'a TestClickHouse) -> Self {
        let tables = sqlx::query(OF_ACCOUNTS).fetch_all(&database.db).await.unwrap();
        let id = new_id();
        let mut account = Self {
            id,
            marker: format!("left-{}", &id.simple().to_string()[20..]),
            rows: BTreeMap::new(),
            tables: tables.iter().map(|row| row.get(0)).collect(),
            database,
            clickhouse,
        };
        for table in account.tables.clone() {
            account.fill(&table).await;
        }
        account.fill_clickhouse().await;
        account
    }

    /// A row in the table, and before it in those it refers to.
    async fn fill(&mut self, table: &str) {
        if self.rows.contains_key(table) {
            return;
        }
        let columns = sqlx::query(COLUMNS).bind(table).fetch_all(&self.database.db).await.unwrap();
        let mut row = Filled::new();
        for column in columns {
            let name: String = column.get("attname");
            let value = match column.get::<Option<String>, _>("refers_to") {
                Some(other) if other == table => continue,
                Some(other) => {
                    Box::pin(self.fill(&other)).await;
                    self.rows[&other][column.get::<&str, _>("refers_by")].clone()
                }
                None if name == "account_id" || (table == "accounts" && name == "id") => json!(self.id),
                None if column.get("needed") => {
                    self.value(&format!("{table}.{name}"), column.get("kind"), column.get("rule"))
                }
                None => continue,
            };
            row.insert(name, value);
        }
        let names = row.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let insert = format!(
            "insert into {table} ({names}) select {names} from jsonb_populate_record(null::{table}, $1)
             returning to_jsonb({table})"
        );
        let made = sqlx::query(AssertSqlSafe(insert)).bind(Value::Object(row)).fetch_one(&self.database.db);
        let Value::Object(made) =
            made.await.unwrap_or_else(|error| panic!("filling {table}: {error}")).get(0)
        else {
            panic!("{table} gave no row")
        };
        self.rows.insert(table.to_owned(), made);
    }

    fn value(&self, column: &str, kind: &str, rule: Option<&str>) -> Value {
        // One of the words that a rule lists, if it lists any.
        if let Some(word) = rule.and_then(|rule| rule.split('\'').nth(1)) {
            return json!(word);
        }
        match kind {
            "uuid" => json!(new_id()),
            "text" => json!(format!("{}-{}", self.marker, self.rows.len())),
            "bytea" => json!(format!("\\x{}", new_id().simple().to_string().repeat(2))),
            "bigint" | "integer" | "smallint" | "numeric" | "double precision" => json!(1),
            "boolean" => json!(true),
            "timestamp with time zone" => json!(now()),
            // A day that is also a month's first, as some tables want.
            "date" => json!(month_of(now())),
            "jsonb" => json!({}),
            "text[]" | "uuid[]" => json!([]),
            "inet" => json!("127.0.0.1"),
            other => panic!("{column} is of a kind that can't be filled yet: {other}"),
        }
    }

    /// A row in each table of ClickHouse that names accounts or sites.
    async fn fill_clickhouse(&self) {
        let columns = "SELECT table, name FROM system.columns WHERE database = currentDatabase()
                       AND name IN ('account_id', 'site_id') ORDER BY table, name";
        let mut tables = BTreeMap::<String, Vec<String>>::new();
        for row in self.ask_clickhouse(columns).await {
            let text = |at: usize| row[at].as_str().unwrap().to_owned();
            tables.entry(text(0)).or_default().push(text(1));
        }
        assert!(tables.contains_key("events"));
        let site = self.rows["analytics_sites"]["id"].as_str().unwrap().to_owned();
        for (table, columns) in tables {
            let id = |column: &String| match column.as_str() {
                "account_id" => format!("'{}'", self.id),
                _ => format!("'{site}'"),
            };
            let values = columns.iter().map(id).collect::<Vec<_>>().join(", ");
            let insert = format!("INSERT INTO {table} ({}) VALUES ({values})", columns.join(", "));
            self.clickhouse().query(&insert).execute().await.unwrap();
        }
    }

    /// The rows of both stores in which anything of the account stands, by table.
    pub(crate) async fn found(&self) -> BTreeMap<String, Vec<String>> {
        let mut found = BTreeMap::<String, Vec<String>>::new();
        let tables = "select oid::regclass::text from pg_class
                      where relkind in ('r', 'p', 'm') and relnamespace = 'public'::regnamespace";
        for table in sqlx::query(tables).fetch_all(&self.database.db).await.unwrap() {
            let table: String = table.get(0);
            let rows = format!("select t::text from {table} t");
            for row in sqlx::query(AssertSqlSafe(rows)).fetch_all(&self.database.db).await.unwrap() {
                let row: String = row.get(0);
                if self.stands_in(&row) {
                    found.entry(table.clone()).or_default().push(row);
                }
            }
        }
        let tables = "SELECT name FROM system.tables WHERE database = currentDatabase()";
        for table in self.ask_clickhouse(tables).await {
            let table = table[0].as_str().unwrap();
            for row in self.ask_clickhouse(&format!("SELECT * FROM {table}")).await {
                if self.stands_in(&row.to_string()) {
                    found.entry(format!("clickhouse {table}")).or_default().push(row.to_string());
                }
            }
        }
        found
    }

    fn stands_in(&self, row: &str) -> bool {
        let own = self.rows.iter().filter(|(table, _)| self.tables.contains(*table));
        let mut ids = own.filter_map(|(_, row)| row.get("id").and_then(Value::as_str));
        row.contains(&self.marker) || row.contains(&self.id.to_string()) || ids.any(|id| row.contains(id))
    }

    /// Every table that can hold data of an account.
    pub(crate) fn tables(&self) -> &BTreeSet<String> {
        &self.tables
    }

    /// A value of its row in a table, as text.
    pub(crate) fn text(&self, table: &str, column: &str) -> &str {
        self.rows[table][column].as_str().unwrap()
    }

    async fn ask_clickhouse(&self, sql: &str) -> Vec<Value> {
        let question = self.clickhouse().query(sql);
        let rows = question.fetch_bytes("JSONCompactEachRow").unwrap().collect().await.unwrap();
        rows.split(|byte| *byte == b'\n').filter_map(|row| serde_json::from_slice(row).ok()).collect()
    }

    fn clickhouse(&self) -> clickhouse::Client {
        let TestClickHouse { url, database, user, password } = self.clickhouse;
        let client = clickhouse::Client::default().with_url(url).with_database(database);
        client.with_user(user).with_password(password)
    }
}
