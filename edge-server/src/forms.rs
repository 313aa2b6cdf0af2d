//! Forms as visitors meet them: looked up once, shown as a page that needs no JavaScript.

use std::time::Instant;

use anyhow::Context;
use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use cache::Fresh;
use domain::forms::{Shut, shut};
use domain::{Complaint, answers::Answers};
use http::{HeaderValue, StatusCode, header};
use minijinja::Environment;
use serde_json::json;
use store::forms::OpenForm;
use url::Url;
use uuid::Uuid;
use web::{Code, Path, Problem};

use crate::config::{Cache, weight};
use crate::edge::Edge;
use crate::lookups::LookUps;
use crate::showing;

const MAX_BYTES: u64 = 64 << 20;
/// No script, nothing from elsewhere; any page may show it in a frame.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; form-action 'self'; \
    base-uri 'none'; frame-ancestors *";
/// The same for a form that sends its visitors on: browsers hold `form-action` against redirects too.
const POLICY_WITH_REDIRECT: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; \
    form-action 'self' http: https:; base-uri 'none'; frame-ancestors *";
const NOWHERE: &str = "There is no form at this address.";
const SUSPENDED: &str = "This form is suspended.";

/// The forms known so far.
pub(crate) struct Forms {
    lookups: LookUps,
    known: Fresh<Uuid, Option<OpenForm>>,
    pages: Environment<'static>,
}

impl Forms {
    /// # Errors
    /// A template can't be read.
    pub(crate) fn new(lookups: LookUps, config: &Cache) -> anyhow::Result<Self> {
        // Its texts and fields are what a form weighs; written down they are about as long as in memory.
        let weigh = |_: &Uuid, form: &Option<OpenForm>| {
            let fields = form.as_ref().and_then(|open| serde_json::to_vec(&open.form.fields).ok());
            weight(4_096 + fields.map_or(0, |fields| 2 * fields.len()))
        };
        let mut pages = Environment::new();
        for (name, source) in [
            ("form.html", include_str!("../templates/form.html")),
            ("notice.html", include_str!("../templates/notice.html")),
            ("frame.html", include_str!("../templates/frame.html")),
        ] {
            pages.add_template(name, source).with_context(|| format!("reading the template {name}"))?;
        }
        Ok(Self { lookups, known: Fresh::new(config.bounds(MAX_BYTES), weigh), pages })
    }

    /// The form at a public address.
    ///
    /// # Errors
    /// A problem: there is none, its account is suspended, or it isn't known and Postgres is away.
    pub(crate) async fn find(&self, id: Uuid) -> Result<OpenForm, Problem> {
        let look_up = self.lookups.ask(async |conn| store::forms::find_open_form(conn, id).await);
        let form = self.known.get(&id, Instant::now(), look_up).await?.value;
        let form = form.ok_or_else(|| Problem::new(Code::NotFound, NOWHERE))?;
        if form.suspended {
            let status = StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS;
            return Err(Problem::new(Code::Suspended, SUSPENDED).answered_with(status));
        }
        Ok(form)
    }

    /// Asks again before the form is shown next. What was known is not even shown stale: this is how the edge
    /// hears that a form was suspended, or has ended.
    pub(crate) fn forget(&self, id: Uuid) {
        self.known.remove(&id);
    }

    /// Asks again about every form.
    pub(crate) fn forget_all(&self) {
        self.known.expire_all();
    }

    /// The form as a page, with what was answered and what is wrong with it.
    pub(crate) fn page(&self, open: &OpenForm, given: &Answers, wrong: &[Complaint]) -> Response {
        let form = &open.form;
        let context = json!({
            "form": { "name": form.name, "submitLabel": form.submit_label, "fields": form.fields },
            // Without a host: a page shown under another name of ours still posts to where it came from.
            "action": format!("/api/forms/{}/submit", form.id),
            "showing": showing::rules(&form.fields),
            "given": given,
            "wrong": wrong,
        });
        let status = if wrong.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        let policy = if onward(open).is_some() { POLICY_WITH_REDIRECT } else { POLICY };
        self.render(status, policy, "form.html", &context)
    }

    /// What a visitor sees of a form that takes no more answers.
    pub(crate) fn shut(&self, open: &OpenForm, why: Shut) -> Response {
        self.notice(StatusCode::GONE, &open.form.name, refusal(why))
    }

    /// One sentence as a page.
    pub(crate) fn notice(&self, status: StatusCode, title: &str, message: &str) -> Response {
        self.render(status, POLICY, "notice.html", &json!({ "title": title, "message": message }))
    }

    fn render(
        &self,
        status: StatusCode,
        policy: &'static str,
        template: &str,
        context: &serde_json::Value,
    ) -> Response {
        let page = self
            .pages
            .get_template(template)
            .and_then(|template| template.render(minijinja::value::Serde(context)));
        match page {
            Ok(html) => {
                let mut response = (status, Html(html)).into_response();
                let headers = response.headers_mut();
                headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
                headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
                headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
                response
            }
            Err(error) => {
                tracing::error!(%error, template, "a page can't be rendered");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

/// Why a form takes no more answers, in a sentence for visitors.
pub(crate) fn refusal(why: Shut) -> &'static str {
    match why {
        Shut::Closed => "This form is closed.",
        Shut::Full => "This form takes no more answers.",
    }
}

/// Where a form sends its visitors on to. Checked when it was set, and once more here, as browsers run what
/// stands behind `javascript:`; and written as a header takes it.
pub(crate) fn onward(open: &OpenForm) -> Option<Url> {
    let url = Url::parse(open.form.redirect_url.as_deref()?).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}

pub(crate) async fn show(State(edge): State<Edge>, id: Result<Path<Uuid>, Problem>) -> Response {
    let found = match id {
        Ok(Path(id)) => edge.forms.find(id).await,
        Err(problem) => Err(problem),
    };
    match found {
        Ok(open) => {
            let form = &open.form;
            let plan_limit = open.plan.limits().submissions_per_form;
            let count = form.submission_count;
            match shut(edge.clock.now(), form.closes_at, count, form.max_submissions, plan_limit) {
                Some(why) => edge.forms.shut(&open, why),
                None => edge.forms.page(&open, &Answers::new(), &[]),
            }
        }
        Err(problem) if problem.code() == Code::NotFound => {
            edge.forms.notice(StatusCode::NOT_FOUND, "No form here", NOWHERE)
        }
        Err(problem) if problem.code() == Code::Suspended => {
            edge.forms.notice(problem.status(), "Suspended", SUSPENDED)
        }
        Err(problem) => {
            let text = "This form can't be shown right now. Please try again in a moment.";
            edge.forms.notice(problem.status(), "Back soon", text)
        }
    }
}
