//! The cache of forms, and of the pages of untouched forms.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::StaleOnErrorCache;
use chrono::{DateTime, Utc};
use domain::fields::Field;
use domain::forms::ClosedReason;
use http::StatusCode;
use store::forms::OpenForm;
use store::read_pool::{ReadError, ReadPool};
use uuid::Uuid;
use web::{Code, Problem};

use super::closed::closed_reason;
use super::pages::cached_page::CachedFormPage;
use super::pages::page::Presentation;
use super::pages::renderer::FormRenderer;
use crate::config::{Cache, weight};
use crate::cpu_work::{Busy, CpuWork, Tenant};
use crate::metrics::CacheName;

/// Upper bound of the memory of a compiled pattern.
const PATTERN_BYTES: usize = 64 << 10;
/// Memory for forms, and the same for their pages.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum age of the information that a form is full, when a submission brings files.
const FULL_MAX_AGE: Duration = Duration::from_secs(1);

/// Most cached pages of one form. Its usual languages and frames are fewer, and visitors who invent others don't push the
/// pages of other forms out.
const MAX_PAGES: usize = 32;

/// Bytes of HTML around a field, and around an option.
const FIELD_BYTES: usize = 400;
const OPTION_BYTES: usize = 150;

/// Forms and their pages.
pub(crate) struct FormCache {
    lookups: ReadPool,
    forms: StaleOnErrorCache<Uuid, Option<Arc<OpenForm>>>,
    pages: StaleOnErrorCache<(Uuid, Presentation), Arc<CachedFormPage>>,
    cpu: CpuWork,
}

impl FormCache {
    pub(crate) fn new(lookups: ReadPool, config: &Cache, cpu: CpuWork) -> Self {
        // A form weighs its texts and fields, which take about as much memory as their JSON, and its compiled patterns.
        let weigh = |_: &Uuid, form: &Option<Arc<OpenForm>>| {
            let fields = form.as_ref().map(|open| open.form.fields.as_slice()).unwrap_or_default();
            let patterns = fields.iter().filter(|field| field.pattern.is_some()).count();
            let json = serde_json::to_vec(fields).map_or(0, |json| json.len());
            weight(4_096 + 2 * json + PATTERN_BYTES * patterns)
        };
        let weigh_page = |_: &_, page: &Arc<CachedFormPage>| weight(page.weight());
        Self {
            lookups,
            forms: CacheName::Forms.new_cache(config.bounds(MAX_BYTES), weigh),
            pages: CacheName::FormPages.new_cache(config.bounds(MAX_BYTES), weigh_page),
            cpu,
        }
    }

    /// Returns a cached form, unless it is suspended.
    pub(super) fn peek(&self, id: Uuid, now: Instant) -> Option<Arc<OpenForm>> {
        self.forms.peek(&id, now)?.filter(|open| !open.suspended)
    }

    /// Returns the form with an id.
    ///
    /// # Errors
    /// The form does not exist, its account is suspended, or it is not cached and Postgres is unavailable.
    pub(crate) async fn find(&self, id: Uuid) -> Result<Arc<OpenForm>, Problem> {
        let find = async |conn: &mut store::Conn| store::forms::find_open_form(conn, id).await;
        let load = async { Ok::<_, ReadError>(self.lookups.query(find).await?.map(Arc::new)) };
        let form = self.forms.get(&id, Instant::now(), load).await?.value;
        let form = form.ok_or_else(|| Problem::new(Code::NotFound, "There is no form at this address."))?;
        if form.suspended {
            let status = StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS;
            return Err(Problem::new(Code::Suspended, "This form is suspended.").with_status(status));
        }
        Ok(form)
    }

    /// Returns why a form accepts no submissions. That a form is full is looked up again unless the entry is new: no
    /// signal announces that a submission was deleted.
    ///
    /// # Errors
    /// See [`Self::find`].
    pub(crate) async fn current_closed_reason(
        &self,
        open: &OpenForm,
        now: DateTime<Utc>,
    ) -> Result<Option<ClosedReason>, Problem> {
        let (id, reason) = (open.form.id, closed_reason(open, now));
        let recent = Instant::now() + self.forms.max_age().saturating_sub(FULL_MAX_AGE);
        let is_recent =
            || self.forms.peek_with_expiry(&id, Instant::now()).is_some_and(|(_, until)| until > recent);
        if reason != Some(ClosedReason::Full) || is_recent() {
            return Ok(reason);
        }
        self.forms.invalidate(&id);
        Ok(closed_reason(&*self.find(id).await?, now))
    }

    /// Returns the cached page of an untouched form.
    pub(super) fn peek_page(
        &self,
        open: &Arc<OpenForm>,
        presentation: Presentation,
        now: Instant,
    ) -> Option<Arc<CachedFormPage>> {
        self.pages.peek(&(open.form.id, presentation), now).filter(|page| page.is_of(open))
    }

    /// Returns the page of an untouched form, rendered if it is not cached. `None` if its template fails.
    pub(super) async fn page(
        &self,
        renderer: &Arc<FormRenderer>,
        open: &Arc<OpenForm>,
        presentation: Presentation,
    ) -> Option<Arc<CachedFormPage>> {
        let key = (open.form.id, presentation);
        if self.pages.peek_stale(&key).is_some_and(|page| !page.is_of(open)) {
            self.pages.remove(&key);
        }
        if self.pages.peek_stale(&key).is_none() {
            self.limit_pages(open.form.id);
        }
        let render = async {
            let (renderer, open) = (Arc::clone(renderer), Arc::clone(open));
            let (tenant, bytes) = (Tenant::Account(open.account_id), page_bytes(&open));
            let render = move || renderer.untouched(&open, presentation).map(Arc::new);
            self.cpu.run(tenant, bytes, render).await?.map_err(|error| {
                tracing::error!(%error, "a form can't be rendered");
                Busy
            })
        };
        self.pages.get(&key, Instant::now(), render).await.ok().map(|rendered| rendered.value)
    }

    /// Removes a page of a form that has [`MAX_PAGES`], the least usual one.
    fn limit_pages(&self, id: Uuid) {
        let cached = Presentation::variants().filter(|one| self.pages.peek_stale(&(id, *one)).is_some());
        for least_usual in cached.skip(MAX_PAGES - 1) {
            self.pages.remove(&(id, least_usual));
        }
    }

    /// Removes a form, which may be suspended or deleted, so it must not be shown stale. Its pages become unreachable with
    /// it, because a page is only used for the form it was rendered from.
    pub(crate) fn remove(&self, id: Uuid) {
        self.forms.remove(&id);
    }

    /// Limits the age of entries while no signals arrive; `None` lifts the limit.
    pub(crate) fn limit_age(&self, limit: Option<Duration>) {
        self.forms.limit_age(limit);
    }

    /// Invalidates every form.
    pub(crate) fn invalidate_all(&self) {
        self.forms.mark_all_stale();
    }
}

/// Returns about how large the page of a form is.
pub(crate) fn page_bytes(open: &OpenForm) -> usize {
    let field_bytes = |field: &Field| {
        let options = field.options.iter().map(|option| OPTION_BYTES + 2 * option.len()).sum::<usize>();
        FIELD_BYTES + 2 * field.label.len() + field.help.as_ref().map_or(0, String::len) + options
    };
    open.form.fields.iter().map(field_bytes).sum()
}
