//! Runs sqlx's statements on a [`Conn`], each until its deadline.

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Either, Execute, Executor, Postgres, SqlStr};
use tokio::time::timeout_at;

use super::conn::{Conn, State, acquire_raw};
use super::pool::Db;

type Step = Either<PgQueryResult, PgRow>;

impl<'c> Executor<'c> for &'c mut Conn {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, sqlx::Result<Step>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let (raw, state) = match self.statement() {
            Ok(statement) => statement,
            Err(error) => return stream::once(std::future::ready(Err(error))).boxed(),
        };
        let by = state.begin();
        let steps = Some((raw.fetch_many(query), state));
        let next = move |rest: Option<(BoxStream<'e, sqlx::Result<Step>>, &'e mut State)>| async move {
            let (mut steps, state) = rest?;
            match timeout_at(by, steps.next()).await {
                Ok(Some(Ok(step))) => Some((Ok(step), Some((steps, state)))),
                Ok(Some(Err(error))) => {
                    state.finish();
                    Some((Err(error), None))
                }
                Ok(None) => {
                    state.finish();
                    None
                }
                Err(_elapsed) => Some((Err(state.give_up()), None)),
            }
        };
        stream::unfold(steps, next).boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move {
            let (raw, state) = self.statement()?;
            state.within(raw.fetch_optional(query)).await
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'c: 'e,
    {
        Box::pin(async move {
            let (raw, state) = self.statement()?;
            state.within(raw.prepare_with(sql, parameters)).await
        })
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, sqlx::Result<sqlx::Describe<Postgres>>>
    where
        'c: 'e,
    {
        Box::pin(async move {
            let (raw, state) = self.statement()?;
            state.within(raw.describe(sql)).await
        })
    }
}

/// Runs a statement on a connection of the pool. For tools and tests; services take a connection first.
impl<'c> Executor<'c> for &'c Db {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, sqlx::Result<Step>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let steps = async move {
            let mut conn = acquire_raw(self).await?;
            let steps: Vec<Step> = conn.fetch_many(query).try_collect().await?;
            Ok::<_, sqlx::Error>(stream::iter(steps.into_iter().map(Ok)))
        };
        stream::once(steps).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move { acquire_raw(self).await?.fetch_optional(query).await })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'c: 'e,
    {
        Box::pin(async move { acquire_raw(self).await?.prepare_with(sql, parameters).await })
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, sqlx::Result<sqlx::Describe<Postgres>>>
    where
        'c: 'e,
    {
        Box::pin(async move { acquire_raw(self).await?.describe(sql).await })
    }
}
