//! Results of forms whose owners show them. Counted anew at most once a second, and for a form that takes long to count
//! less often: however many look at a poll, Postgres has little to do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use cache::{Bounds, StaleOnErrorCache};
use domain::results;
use http::{HeaderValue, header};
use serde_json::json;
use store::forms::OpenForm;
use uuid::Uuid;
use web::{Code, Path, Problem};

use crate::config::weight;
use crate::state::EdgeState;

const MAX_BYTES: u64 = 16 << 20;
/// How long counts are good.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// Counting may take this part of the time: one in ten.
const REST: u32 = 10;

/// The results counted so far.
pub(crate) struct Results {
    known: StaleOnErrorCache<Uuid, Arc<Counted>>,
}

struct Counted {
    body: bytes::Bytes,
    /// Until then it is not counted again.
    good_until: Instant,
}

impl Results {
    pub(crate) fn new() -> Self {
        let weigh = |_: &Uuid, counted: &Arc<Counted>| weight(256 + counted.body.len());
        let bounds = Bounds { max_bytes: MAX_BYTES, max_age: FRESH_FOR, retry_interval: FRESH_FOR };
        Self { known: StaleOnErrorCache::new(bounds, weigh) }
    }

    async fn find(&self, db: &store::Db, open: &Arc<OpenForm>) -> Result<bytes::Bytes, Problem> {
        let (known, db, open) = (self.known.clone(), db.clone(), Arc::clone(open));
        // Whoever asked may hang up: Postgres goes on counting, and so must whoever else waits for it.
        let counted = tokio::spawn(async move {
            let id = open.form.id;
            let count = async {
                match known.peek_stale(&id).filter(|last| Instant::now() < last.good_until) {
                    Some(last) => Ok(last),
                    None => count(&db, &open).await.map(Arc::new),
                }
            };
            known.get(&id, Instant::now(), count).await
        });
        let counted = counted.await.map_err(|_| Problem::nothing_changed())?;
        Ok(counted.map_err(|error: store::Error| Problem::from(error))?.value.body.clone())
    }

    /// The form is another now: what is known of it may be of fields that it hasn't any more.
    pub(crate) fn forget(&self, id: Uuid) {
        self.known.remove(&id);
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
    let rest = (now - began).saturating_mul(REST);
    Ok(Counted { body: body.to_string().into(), good_until: now + rest })
}

/// Results, for pages of any origin.
pub(crate) fn route() -> MethodRouter<EdgeState> {
    get(show).layer(axum::middleware::map_response(async |mut response: Response| {
        let everybody = HeaderValue::from_static("*");
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, everybody);
        response
    }))
}

async fn show(State(edge): State<EdgeState>, Path(id): Path<Uuid>) -> Result<Response, Problem> {
    let open = edge.forms.find(id).await?;
    if !open.form.public_results {
        let detail = "the results of this form are not public";
        return Err(Problem::new(Code::Forbidden, detail).hint("its owner can set `publicResults`"));
    }
    let body = edge.results.find(&edge.db, &open).await?;
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "max-age=1")];
    Ok((headers, body).into_response())
}
