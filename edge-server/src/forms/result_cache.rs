//! The cache of public form results. Results are counted at most once a second, and less often if counting takes long:
//! however many visitors watch a poll, the load on Postgres stays small.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cache::{Bounds, StaleOnErrorCache};
use domain::results;
use serde_json::json;
use store::forms::OpenForm;
use uuid::Uuid;
use web::Problem;

use crate::config::weight;
use crate::metrics::CacheName;

const MAX_BYTES: u64 = 16 << 20;
const MAX_AGE: Duration = Duration::from_secs(1);
/// A count is not repeated for this multiple of its duration.
const PAUSE_FACTOR: u32 = 10;

/// Results by form.
pub(crate) struct ResultCache {
    results: StaleOnErrorCache<Uuid, Arc<Counted>>,
}

struct Counted {
    body: Bytes,
    /// The results are not counted again before.
    valid_until: Instant,
}

impl ResultCache {
    pub(crate) fn new() -> Self {
        let weigh = |_: &Uuid, counted: &Arc<Counted>| weight(256 + counted.body.len());
        let bounds = Bounds { max_bytes: MAX_BYTES, max_age: MAX_AGE, retry_interval: MAX_AGE };
        Self { results: CacheName::FormResults.new_cache(bounds, weigh) }
    }

    /// Returns a form's results as JSON.
    pub(crate) async fn find(&self, db: &store::Db, open: &Arc<OpenForm>) -> Result<Bytes, Problem> {
        let (results, db, open) = (self.results.clone(), db.clone(), Arc::clone(open));
        // In a task of its own: if the client disconnects, Postgres would go on counting while other clients wait.
        let counted = tokio::spawn(async move {
            let id = open.form.id;
            let load = async {
                match results.peek_stale(&id).filter(|last| Instant::now() < last.valid_until) {
                    Some(last) => Ok(last),
                    None => count(&db, &open).await.map(Arc::new),
                }
            };
            results.get(&id, Instant::now(), load).await
        });
        let counted = counted.await.map_err(|_| Problem::nothing_changed())?;
        Ok(counted.map_err(|error: store::Error| Problem::from(error))?.value.body.clone())
    }

    /// Removes a form's results: its fields may have changed.
    pub(crate) fn remove(&self, id: Uuid) {
        self.results.remove(&id);
    }
}

async fn count(db: &store::Db, open: &OpenForm) -> Result<Counted, store::Error> {
    let began = Instant::now();
    let form = &open.form;
    let mut conn = store::acquire(db).await?;
    let countable = results::countable(&form.fields);
    let (total, tallies) =
        store::submissions::get_results(&mut conn, open.account_id, form.id, &countable).await?;
    let fields = results::of(&form.fields, &tallies);
    let body = json!({"formId": form.id, "name": form.name, "submissions": total, "fields": fields});
    let now = Instant::now();
    let pause = (now - began).saturating_mul(PAUSE_FACTOR);
    Ok(Counted { body: body.to_string().into(), valid_until: now + pause })
}
