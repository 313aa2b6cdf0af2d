//! Submissions that come while others are being written wait for those, and are then stored together.
//!
//! A write to disk takes as long for one as for a hundred. Nobody waits for company: who finds a free writer is written at
//! once, alone if need be, and the busier it gets, the more go at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::Fault;
use store::submissions::{Plain, take_together};
use tokio::sync::oneshot;
use uuid::Uuid;

/// Statements under way at a time. While one waits for the disk, another is carried out.
const WRITERS: usize = 2;
/// Most submissions, and bytes of answers (of more than one), in a statement.
const MAX_ROWS: usize = 128;
const MAX_BYTES: usize = 1 << 20;

/// Where plain submissions are stored.
#[derive(Clone)]
pub(crate) struct Together {
    db: store::Db,
    line: Arc<Mutex<Line>>,
}

#[derive(Default)]
struct Line {
    waiting: Vec<Waiting>,
    writers: usize,
}

struct Waiting {
    plain: Plain,
    told: oneshot::Sender<Fate>,
}

/// What became of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is stored.
    Stored,
    /// It was left out, and is to be taken by itself.
    LeftOut,
    /// Postgres is away; nothing was stored.
    Away,
    /// Postgres went away in the middle.
    Unknown,
}

impl Together {
    /// Stores in `db`.
    pub(crate) fn new(db: store::Db) -> Self {
        Self { db, line: Arc::default() }
    }

    /// Stores a submission. If the caller stops waiting it may be stored all the same.
    pub(super) async fn take(&self, plain: Plain) -> Fate {
        let (told, fate) = oneshot::channel();
        if self.line().join(Waiting { plain, told }) {
            tokio::spawn(self.clone().write_all());
        }
        fate.await.unwrap_or(Fate::Unknown)
    }

    /// Writes until nobody waits.
    async fn write_all(self) {
        loop {
            let mut conn = match store::acquire(&self.db).await {
                Ok(conn) => conn,
                Err(error) => {
                    tracing::warn!(%error, "submissions can't be stored");
                    return self.line().give_up();
                }
            };
            loop {
                let Some(batch) = self.line().next() else { return };
                if write(&mut conn, batch).await.is_err() {
                    break;
                }
            }
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Lines up; gives whether the caller has to bring a writer.
    fn join(&mut self, one: Waiting) -> bool {
        self.waiting.push(one);
        let is_short = self.writers < WRITERS;
        self.writers += usize::from(is_short);
        is_short
    }

    /// Whom a writer is to write next; none if nobody waits, and then there is a writer less.
    fn next(&mut self) -> Option<Vec<Waiting>> {
        if self.waiting.is_empty() {
            self.writers -= 1;
            return None;
        }
        let mut bytes = 0;
        let fits = |one: &Waiting| {
            bytes += one.plain.bytes();
            bytes <= MAX_BYTES
        };
        let fitting = self.waiting.iter().take(MAX_ROWS).map(fits).take_while(|fits| *fits).count();
        let rest = self.waiting.split_off(fitting.max(1));
        Some(std::mem::replace(&mut self.waiting, rest))
    }

    /// Sends everybody away, and the writer too.
    fn give_up(&mut self) {
        self.writers -= 1;
        for one in self.waiting.drain(..) {
            tell(one.told, Fate::Away);
        }
    }
}

/// # Errors
/// Postgres went away.
async fn write(conn: &mut store::Conn, batch: Vec<Waiting>) -> Result<(), store::Error> {
    let (plain, told): (Vec<_>, Vec<_>) = batch.into_iter().map(|one| (one.plain, one.told)).unzip();
    let taken = take_together(conn, &plain).await;
    let stored: HashSet<Uuid> = taken.as_ref().map(|ids| ids.iter().copied().collect()).unwrap_or_default();
    let is_away = taken.as_ref().is_err_and(Fault::is_unavailable);
    for (one, told) in plain.iter().zip(told) {
        let fate = match (stored.contains(&one.id()), is_away) {
            (true, _) => Fate::Stored,
            (false, true) => Fate::Unknown,
            (false, false) => Fate::LeftOut,
        };
        tell(told, fate);
    }
    match taken {
        Err(error) if is_away => {
            tracing::warn!(%error, "postgres went away while submissions were stored");
            Err(error)
        }
        Err(error) => {
            tracing::error!(%error, "submissions can't be stored together");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

fn tell(told: oneshot::Sender<Fate>, fate: Fate) {
    // Whoever has hung up needs not know.
    let _gone = told.send(fate);
}
