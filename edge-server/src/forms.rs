//! Forms as visitors meet them: looked up once, shown as a page that needs no JavaScript.

use std::time::Instant;

use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use cache::Fresh;
use domain::{Complaint, answers::Answers, forms};
use http::{HeaderValue, StatusCode, header};
use minijinja::Environment;
use serde_json::json;
use store::forms::OpenForm;
use uuid::Uuid;
use web::{Path, Problem};

use crate::config::{Cache, weight};
use crate::edge::Edge;

/// A form is a few kilobytes at most.
const MAX_BYTES: u64 = 64 << 20;
/// No script, nothing from elsewhere; any page may show it in a frame.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; form-action 'self'; \
    base-uri 'none'; frame-ancestors *";

/// The forms known so far.
pub(crate) struct Forms {
    db: store::Db,
    known: Fresh<Uuid, Option<OpenForm>>,
    pages: Environment<'static>,
}

impl Forms {
    pub(crate) fn new(db: store::Db, config: &Cache) -> Self {
        let weigh = |_: &Uuid, form: &Option<OpenForm>| {
            weight(256 + form.as_ref().map_or(0, |open| 512 * open.form.fields.len()))
        };
        let mut pages = Environment::new();
        let templates = [
            ("form.html", include_str!("../templates/form.html")),
            ("thanks.html", include_str!("../templates/thanks.html")),
            ("frame.html", include_str!("../templates/frame.html")),
        ];
        for (name, source) in templates {
            if let Err(error) = pages.add_template(name, source) {
                tracing::error!(%error, name, "a template can't be read");
            }
        }
        Self { db, known: Fresh::new(config.bounds(MAX_BYTES), weigh), pages }
    }

    /// The form at a public address.
    ///
    /// # Errors
    /// A problem: there is none, its account is suspended, or it isn't known and Postgres is away.
    pub(crate) async fn find(&self, id: Uuid) -> Result<OpenForm, Problem> {
        let look_up = async {
            let mut conn = store::acquire(&self.db).await?;
            store::forms::find_open_form(&mut conn, id).await
        };
        let form = self.known.get(&id, Instant::now(), look_up).await?.value;
        form.filter(|form| !form.suspended)
            .ok_or_else(|| Problem::new(web::Code::NotFound, "there is no form at this address"))
    }

    /// Asks again before the form is shown next.
    pub(crate) fn forget(&self, id: Uuid) {
        self.known.invalidate(&id);
    }

    /// Asks again about every form.
    pub(crate) fn forget_all(&self) {
        self.known.expire_all();
    }

    /// The form as a page, with what was answered and what is wrong with it.
    pub(crate) fn page(
        &self,
        edge: &Edge,
        open: &OpenForm,
        given: &Answers,
        wrong: &[Complaint],
    ) -> Response {
        let form = &open.form;
        let shut = forms::shut(edge.clock.now(), form.closes_at, 0, None, -1);
        let page = self.render(
            "form.html",
            &json!({
                "form": { "name": form.name, "submit_label": form.submit_label, "fields": form.fields },
                "action": edge.addresses.submit(form.id),
                "closed": shut.is_some(),
                "given": given,
                "wrong": wrong,
            }),
        );
        let status = if wrong.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        (status, page).into_response()
    }

    /// What a visitor sees after submitting.
    pub(crate) fn thanks(&self, open: &OpenForm, message: &str) -> Response {
        self.render("thanks.html", &json!({ "form": { "name": open.form.name }, "message": message }))
    }

    fn render(&self, template: &str, context: &serde_json::Value) -> Response {
        let page = self
            .pages
            .get_template(template)
            .and_then(|template| template.render(minijinja::value::Serde(context)));
        match page {
            Ok(html) => {
                let mut response = Html(html).into_response();
                let headers = response.headers_mut();
                headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
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

pub(crate) async fn show(State(edge): State<Edge>, Path(id): Path<Uuid>) -> Result<Response, Problem> {
    let open = edge.forms.find(id).await?;
    Ok(edge.forms.page(&edge, &open, &Answers::new(), &[]))
}
