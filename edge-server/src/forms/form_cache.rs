//! Forms as visitors meet them: looked up once, shown as a page that needs no JavaScript, and kept ready.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use cache::StaleOnErrorCache;
use chrono::{DateTime, Utc};
use domain::FieldError;
use domain::answers::Answers;
use domain::encryption::MasterKey;
use domain::forms::ClosedReason;
use http::{HeaderMap, StatusCode};
use store::form_files::WaitingFile;
use store::forms::OpenForm;
use url::Url;
use uuid::Uuid;
use web::{Code, Problem};

use super::cached_page::Ready;
use super::languages::Messages;
use super::page::Presentation;
use super::page::{Notice, Page, Pages};
use super::view_model::FormModel;
use crate::config::{Cache, weight};
use crate::read_pool::ReadPool;
use crate::sites::connection_cache::Generation;
use crate::sites::page_response::{Reply, request_id};
use crate::sites::pages::encodings::Accepted;
use crate::state::EdgeState;

/// What a pattern takes at most, compiled.
const PATTERN_BYTES: usize = 64 << 10;
/// Of forms, and of their pages.
const MAX_BYTES: u64 = 64 << 20;
/// So long a form that was full is held to be so still, before anybody's files are taken for it.
const FULL_FOR: Duration = Duration::from_secs(1);
const NOWHERE: &str = "There is no form at this address.";
const SUSPENDED: &str = "This form is suspended.";
/// The place of gzip among the codings.
const GZIP: usize = 0;

/// The forms known so far.
pub(crate) struct FormCache {
    lookups: ReadPool,
    pub(super) known: StaleOnErrorCache<Uuid, Option<Arc<OpenForm>>>,
    pub(super) ready: StaleOnErrorCache<(Uuid, Presentation), Arc<Ready>>,
    pub(super) forgotten: Generation,
    fresh_for: Duration,
    pages: Pages,
    /// Signs tokens.
    key: MasterKey,
    /// Stands for a token until there is one. Nobody who writes a form can know it.
    gap: String,
}

/// What came with a form and is shown once more.
#[derive(Debug, Default)]
pub(crate) struct Given<'a> {
    pub(crate) answers: Answers,
    pub(crate) wrong: &'a [FieldError],
    pub(crate) files: &'a [WaitingFile],
    /// Of the page that was sent.
    pub(crate) token: Option<&'a str>,
}

impl FormCache {
    /// # Errors
    /// A template can't be read.
    pub(crate) fn new(
        lookups: ReadPool,
        config: &Cache,
        key: MasterKey,
        gap: [u8; 16],
    ) -> anyhow::Result<Self> {
        // Its texts and fields are what a form weighs, written down about as long as in memory, and its compiled patterns.
        let weigh = |_: &Uuid, form: &Option<Arc<OpenForm>>| {
            let fields = form.as_ref().map(|open| open.form.fields.as_slice()).unwrap_or_default();
            let patterns = fields.iter().filter(|field| field.pattern.is_some()).count();
            let written = serde_json::to_vec(fields).map_or(0, |written| written.len());
            weight(4_096 + 2 * written + PATTERN_BYTES * patterns)
        };
        Ok(Self {
            lookups,
            known: StaleOnErrorCache::new(config.bounds(MAX_BYTES), weigh),
            ready: StaleOnErrorCache::new(config.bounds(MAX_BYTES), |_, page: &Arc<Ready>| {
                weight(page.weight())
            }),
            forgotten: Generation::default(),
            fresh_for: config.fresh_for,
            pages: Pages::new()?,
            key,
            gap: hex::encode(gap),
        })
    }

    /// The form at a public address.
    ///
    /// # Errors
    /// A problem: there is none, its account is suspended, or it isn't known and Postgres is away.
    pub(crate) async fn find(&self, id: Uuid) -> Result<Arc<OpenForm>, Problem> {
        let find = async |conn: &mut store::Conn| store::forms::find_open_form(conn, id).await;
        let look_up =
            async { Ok::<_, crate::read_pool::ReadError>(self.lookups.query(find).await?.map(Arc::new)) };
        let form = self.known.get(&id, Instant::now(), look_up).await?.value;
        let form = form.ok_or_else(|| Problem::new(Code::NotFound, NOWHERE))?;
        if form.suspended {
            let status = StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS;
            return Err(Problem::new(Code::Suspended, SUSPENDED).with_status(status));
        }
        Ok(form)
    }

    /// Asks again before the form is shown next. What was known is not even shown stale: this is how the edge
    /// hears that a form was suspended, or has ended. Its pages go with it, as they are of a form that is known.
    pub(crate) fn forget(&self, id: Uuid) {
        self.known.remove(&id);
        self.forgotten.note();
    }

    /// Why a form takes no answers. That one is full is found out anew, unless that was done just now: nobody tells that a
    /// submission was deleted.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(crate) async fn still_shut(
        &self,
        open: &OpenForm,
        now: DateTime<Utc>,
    ) -> Result<Option<ClosedReason>, Problem> {
        let (id, why) = (open.form.id, closed_reason(open, now));
        let asked_lately = Instant::now() + self.fresh_for.saturating_sub(FULL_FOR);
        let is_new = || {
            self.known.peek_with_expiry(&id, Instant::now()).is_some_and(|(_, until)| until > asked_lately)
        };
        if why != Some(ClosedReason::Full) || is_new() {
            return Ok(why);
        }
        self.known.invalidate(&id);
        Ok(closed_reason(&*self.find(id).await?, now))
    }

    /// Asks again about every form.
    pub(crate) fn forget_all(&self) {
        self.known.mark_all_stale();
        self.forgotten.note();
    }

    /// What is said in the language of a manner.
    pub(crate) fn words(&self, manner: Presentation) -> &Messages {
        self.pages.words(manner.language)
    }

    /// What the pages of forms are signed with.
    pub(crate) fn key(&self) -> &MasterKey {
        &self.key
    }

    /// The form as a page, with what was answered and what is wrong with it.
    pub(crate) fn page(
        &self,
        open: &OpenForm,
        manner: Presentation,
        given: &Given<'_>,
        now: DateTime<Utc>,
    ) -> Response {
        let new = || domain::honeypot::token(&self.key, open.form.id, now.timestamp());
        let token = given.token.map_or_else(new, str::to_owned);
        let status = if given.wrong.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        answer(self.make(open, manner, given, &token), status)
    }

    /// What a visitor sees of a form that takes no more answers.
    pub(crate) fn shut(&self, open: &OpenForm, manner: Presentation, why: ClosedReason) -> Response {
        let words = &self.words(manner).page;
        let message = match why {
            ClosedReason::Closed => &words.closed,
            ClosedReason::Full => &words.full,
        };
        self.notice(manner, StatusCode::GONE, &open.form.name, message)
    }

    /// One sentence as a page.
    pub(crate) fn notice(
        &self,
        manner: Presentation,
        status: StatusCode,
        title: &str,
        message: &str,
    ) -> Response {
        let notice = Notice { title, message, is_thanks: false, redirect_target: None };
        answer(self.pages.notice(manner, &notice), status)
    }

    /// What a visitor sees who has sent the form.
    pub(super) fn thanks(&self, open: &OpenForm, manner: Presentation) -> Response {
        let words = &self.words(manner).page;
        let url = redirect_target(open).filter(|_| manner.is_embedded);
        let notice = Notice {
            title: &words.thanks_title,
            message: open.form.success_message.as_deref().unwrap_or(&words.thanks),
            is_thanks: true,
            // In a frame a visitor is not taken elsewhere: the page around may do so, or they themselves.
            redirect_target: url.as_ref().map(Url::as_str),
        };
        answer(self.pages.notice(manner, &notice), StatusCode::OK)
    }

    /// A problem that a visitor ran into, as a page in their language.
    pub(crate) fn problem(&self, manner: Presentation, problem: &Problem) -> Response {
        let words = &self.words(manner).page;
        let (title, message) = match problem.code() {
            Code::NotFound => (&words.missing_title, &words.missing),
            Code::Suspended => (&words.suspended_title, &words.suspended),
            Code::PayloadTooLarge => (&words.refused_title, &words.too_large),
            _ if problem.is_client_error() => (&words.refused_title, &words.refused),
            _ => (&words.away_title, &words.away),
        };
        self.notice(manner, problem.status(), title, message)
    }

    pub(super) fn make(
        &self,
        open: &OpenForm,
        manner: Presentation,
        given: &Given<'_>,
        token: &str,
    ) -> Result<Page, minijinja::Error> {
        let limit = open.plan.limits().asset_size_limit;
        let sheet = FormModel {
            words: self.words(manner),
            given: &given.answers,
            wrong: given.wrong,
            files: given.files,
            max_file_bytes: u64::try_from(limit).unwrap_or(u64::MAX),
        };
        self.pages.form(open, manner, &sheet, token)
    }

    /// The page of an untouched form, kept ready.
    pub(super) async fn ready(&self, open: &Arc<OpenForm>, manner: Presentation) -> Option<Arc<Ready>> {
        let key = (open.form.id, manner);
        let last = self.ready.peek_stale(&key);
        if last.is_some_and(|page| !page.is_of(open)) {
            self.ready.remove(&key);
        }
        let make = async {
            let page = self.make(open, manner, &Given::default(), &self.gap);
            page.map(|page| Arc::new(Ready::new(open.clone(), page, &self.gap)))
        };
        let made = self.ready.get(&key, Instant::now(), make).await;
        made.inspect_err(|error| tracing::error!(%error, "a form can't be rendered"))
            .ok()
            .map(|made| made.value)
    }

    /// The page's bytes as they are sent in that second, to a visitor who takes these encodings; and whether they are
    /// compressed.
    pub(crate) fn fill(&self, page: &Ready, accepted: Accepted, second: i64) -> (Bytes, bool) {
        let is_gzip = accepted.takes(GZIP);
        let token = || domain::honeypot::token(&self.key, page.form_id(), second);
        (page.body(second, is_gzip, token), is_gzip)
    }

    /// The page as it is sent now.
    pub(super) fn send(&self, edge: &EdgeState, page: &Ready, asked: &HeaderMap) -> Reply {
        let (body, is_gzip) = self.fill(page, Accepted::by(asked), edge.clock.now().timestamp());
        let mut reply = page.reply(body, is_gzip);
        let id = request_id(asked, &edge.rng);
        reply.headers_mut().insert(contract::edge::REQUEST_ID, id);
        reply
    }
}

fn answer(page: Result<Page, minijinja::Error>, status: StatusCode) -> Response {
    match page {
        Ok(page) => page.answer(status),
        Err(error) => {
            tracing::error!(%error, "a page can't be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Why a form takes no answers now, as far as is known here.
pub(crate) fn closed_reason(open: &OpenForm, now: DateTime<Utc>) -> Option<ClosedReason> {
    let form = &open.form;
    let plan_limit = open.plan.limits().submissions_per_form;
    ClosedReason::of(now, form.closes_at, form.submission_count, form.max_submissions, plan_limit)
}

/// The problem that a form which takes no more answers is.
pub(crate) fn code_of(why: ClosedReason) -> Code {
    match why {
        ClosedReason::Closed => Code::FormClosed,
        ClosedReason::Full => Code::FormFull,
    }
}

/// Why a form takes no more answers, in a sentence for programs.
pub(crate) fn refusal(why: ClosedReason) -> &'static str {
    match why {
        ClosedReason::Closed => "This form is closed.",
        ClosedReason::Full => "This form takes no more answers.",
    }
}

/// Where a form sends its visitors on to. Checked when it was set, and once more here, as browsers run what
/// stands behind `javascript:`; and written as a header takes it.
pub(crate) fn redirect_target(open: &OpenForm) -> Option<Url> {
    let url = Url::parse(open.form.redirect_url.as_deref()?).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}
