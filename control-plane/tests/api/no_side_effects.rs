//! Detects side effects: a rejected call must leave every row of every table unchanged.

use crate::harness::Api;

/// Every table with a digest of its rows. Excludes the last use of keys and sessions, which every call records, and
/// the outbox, which is emptied in the background.
const TAKE_SNAPSHOT: &str = "
    create schema if not exists watched;
    create or replace function watched.digests() returns table (name text, digest text) language plpgsql as $$
    declare
        at text;
    begin
        for at in select tablename from pg_tables
                  where schemaname = 'public' and tablename not in ('outbox', '_sqlx_migrations')
        loop
            return query execute format(
                'select %L::text, md5(coalesce(string_agg(row, '''' order by row), ''''))
                 from (select md5((to_jsonb(t) - %L::text[])::text) as row from public.%I t) rows', at,
                case at when 'sessions' then '{last_seen_at, expires_at}' else '{last_used_at}' end, at);
        end loop;
    end $$;
    drop table if exists watched.before;
    create table watched.before as select * from watched.digests()";

const COMPARE: &str = "
    do $$
    declare
        changed text;
    begin
        select string_agg(name, ', ') into changed
        from watched.digests() now join watched.before using (name) where now.digest <> before.digest;
        if changed is not null then raise exception 'rows have changed in: %', changed; end if;
    end $$";

/// A snapshot of the database.
pub(crate) struct Snapshot<'a>(&'a Api);

impl<'a> Snapshot<'a> {
    /// Takes a snapshot.
    pub(crate) async fn take(api: &'a Api) -> Self {
        api.execute(TAKE_SNAPSHOT).await.unwrap();
        Self(api)
    }

    /// Returns an error with the tables that have changed.
    pub(crate) async fn check(&self) -> Result<(), String> {
        self.0.execute(COMPARE).await.map_err(|error| format!("{error:?}"))
    }
}

#[tokio::test]
async fn a_change_of_one_row_is_detected() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let before = Snapshot::take(&api).await;
    api.account_of(&key).await;
    assert_eq!(before.check().await, Ok(()));
    api.execute("update accounts set timezone = 'Europe/Berlin'").await.unwrap();
    let error = before.check().await.unwrap_err();
    assert!(error.contains("rows have changed in: accounts"), "{error}");
}
