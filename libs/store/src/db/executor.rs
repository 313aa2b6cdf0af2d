//! Runs sqlx's statements on a [`Conn`], each until its deadline.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Either, Execute, Executor, Postgres, SqlStr};
use tokio::time::{Sleep, sleep_until};

use super::conn::{Conn, State, acquire_raw};
use super::pool::Db;

type Step = Either<PgQueryResult, PgRow>;

/// The results of a statement, until its deadline.
struct Steps<'e> {
    steps: BoxStream<'e, sqlx::Result<Step>>,
    deadline: Pin<Box<Sleep>>,
    state: &'e mut State,
    has_ended: bool,
}

impl Stream for Steps<'_> {
    type Item = sqlx::Result<Step>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let next = match self.steps.poll_next_unpin(cx) {
            Poll::Pending => {
                ready!(self.deadline.as_mut().poll(cx));
                self.has_ended = true;
                return Poll::Ready(Some(Err(self.state.give_up())));
            }
            Poll::Ready(next) => next,
        };
        if !matches!(next, Some(Ok(_))) {
            self.has_ended = true;
            self.state.finish();
        }
        Poll::Ready(next)
    }
}

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
        let deadline = Box::pin(sleep_until(state.begin()));
        Steps { steps: raw.fetch_many(query), deadline, state, has_ended: false }.boxed()
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
