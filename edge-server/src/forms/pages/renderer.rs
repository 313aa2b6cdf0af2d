//! Renders forms, and notices about them, as responses in the visitor's language.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::addresses::Addresses;
use domain::answers::Answers;
use domain::appearance::Appearance;
use domain::encryption::MasterKey;
use domain::forms::ClosedReason;
use domain::honeypot;
use http::StatusCode;
use store::forms::{Form, OpenForm};
use url::Url;
use web::{Code, Problem};

use super::cached_page::CachedFormPage;
use super::languages::Messages;
use super::look::Look;
use super::page::{FormTemplates, Notice, Page, Presentation};
use super::view_model::{FormModel, Prefill};
use crate::forms::redirect::redirect_target;
use crate::sites::pages::encodings::{Accepted, GZIP_INDEX};

/// Renders pages and signs their tokens.
pub(crate) struct FormRenderer {
    templates: FormTemplates,
    key: MasterKey,
    addresses: Addresses,
    /// Takes the token's place in cached pages. It is random, so that no form can contain it.
    token_placeholder: String,
}

impl FormRenderer {
    /// # Errors
    /// A template is invalid.
    pub(crate) fn new(key: MasterKey, addresses: Addresses, placeholder: [u8; 16]) -> anyhow::Result<Self> {
        Ok(Self {
            templates: FormTemplates::new()?,
            key,
            addresses,
            token_placeholder: hex::encode(placeholder),
        })
    }

    /// Returns the key that signs tokens, challenges and digests of forms.
    pub(crate) fn key(&self) -> &MasterKey {
        &self.key
    }

    pub(crate) fn messages(&self, presentation: Presentation) -> &Messages {
        self.templates.messages(presentation.language)
    }

    /// Returns the form's page with previous answers and errors.
    pub(crate) fn form(
        &self,
        open: &OpenForm,
        presentation: Presentation,
        prefill: &Prefill<'_>,
        now: DateTime<Utc>,
    ) -> Response {
        let new = || self.token(&open.form, &prefill.answers, now.timestamp());
        let token = prefill.token.map_or_else(new, str::to_owned);
        let status = if prefill.errors.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        respond(self.render(open, presentation, prefill, Some(&token)), status)
    }

    /// Returns the form's page with answers from its URL.
    pub(crate) fn prefilled(
        &self,
        open: &OpenForm,
        presentation: Presentation,
        answers: Answers,
        accepted: Accepted,
        now: DateTime<Utc>,
    ) -> Response {
        let token = self.token(&open.form, &answers, now.timestamp());
        let prefill = Prefill { answers, ..Prefill::default() };
        match self.render(open, presentation, &prefill, Some(&token)) {
            Ok(page) => page.into_encoded_response(accepted),
            failed => respond(failed, StatusCode::OK),
        }
    }

    /// Returns the page of a form that accepts no submissions.
    pub(crate) fn closed(
        &self,
        open: &OpenForm,
        presentation: Presentation,
        reason: ClosedReason,
    ) -> Response {
        let messages = &self.messages(presentation).page;
        let message = match reason {
            ClosedReason::Closed => &messages.closed,
            ClosedReason::Full => &messages.full,
        };
        let notice = Notice { title: &open.form.name, message, is_thanks: false, redirect_url: None };
        respond(
            self.templates.notice(presentation, &notice, &self.look(open, presentation), false),
            StatusCode::GONE,
        )
    }

    /// Returns the page for answers that were received before.
    pub(crate) fn duplicate(&self, open: &OpenForm, presentation: Presentation) -> Response {
        let message = &self.messages(presentation).page.duplicate;
        let notice = Notice { title: &open.form.name, message, is_thanks: false, redirect_url: None };
        respond(
            self.templates.notice(presentation, &notice, &self.look(open, presentation), false),
            StatusCode::CONFLICT,
        )
    }

    /// Returns a page with one sentence.
    fn notice(&self, presentation: Presentation, status: StatusCode, title: &str, message: &str) -> Response {
        let notice = Notice { title, message, is_thanks: false, redirect_url: None };
        respond(self.templates.notice(presentation, &notice, &self.plain_look(presentation), false), status)
    }

    /// Returns the page of a draft, which can't be submitted.
    pub(crate) fn draft(&self, open: &OpenForm, presentation: Presentation) -> Response {
        respond(self.render(open, presentation, &Prefill::default(), None), StatusCode::OK)
    }

    /// Returns the page that says why a draft can't be shown.
    pub(crate) fn draft_notice(
        &self,
        presentation: Presentation,
        status: StatusCode,
        message: &str,
    ) -> Response {
        let title = "This can\u{2019}t be shown yet";
        let notice = Notice { title, message, is_thanks: false, redirect_url: None };
        respond(self.templates.notice(presentation, &notice, &self.plain_look(presentation), true), status)
    }

    /// Returns the thank-you page.
    pub(crate) fn thanks(&self, open: &OpenForm, presentation: Presentation) -> Response {
        let messages = &self.messages(presentation).page;
        let url = redirect_target(open).filter(|_| presentation.is_embedded());
        let notice = Notice {
            title: &messages.thanks_title,
            message: open.form.success_message.as_deref().unwrap_or(&messages.thanks),
            is_thanks: true,
            // The edge does not redirect inside a frame: the embedding page may, or the visitor follows the link.
            redirect_url: url.as_ref().map(Url::as_str),
        };
        respond(
            self.templates.notice(presentation, &notice, &self.look(open, presentation), false),
            StatusCode::OK,
        )
    }

    /// Returns the page that asks for the confirmation of a submission.
    pub(crate) fn confirmation(&self, open: &OpenForm, presentation: Presentation, token: &str) -> Response {
        let look = self.look(open, presentation);
        respond(self.templates.confirmation(open, presentation, &look, token), StatusCode::OK)
    }

    /// Returns the page for a problem.
    pub(crate) fn problem(&self, presentation: Presentation, problem: &Problem) -> Response {
        let messages = &self.messages(presentation).page;
        let (title, message) = match problem.code() {
            Code::NotFound => (&messages.missing_title, &messages.missing),
            Code::Suspended => (&messages.suspended_title, &messages.suspended),
            Code::PayloadTooLarge => (&messages.refused_title, &messages.too_large),
            _ if problem.is_client_error() => (&messages.refused_title, &messages.refused),
            _ => (&messages.unavailable_title, &messages.unavailable),
        };
        self.notice(presentation, problem.status(), title, message)
    }

    /// Renders the page of an untouched form with a placeholder for its token.
    pub(crate) fn untouched(
        &self,
        open: &Arc<OpenForm>,
        presentation: Presentation,
    ) -> Result<CachedFormPage, minijinja::Error> {
        let page = self.render(open, presentation, &Prefill::default(), Some(&self.token_placeholder))?;
        Ok(CachedFormPage::new(Arc::clone(open), page, &self.token_placeholder))
    }

    /// Returns a cached page's body with the token of that second, and whether it is compressed.
    pub(crate) fn fill(&self, page: &CachedFormPage, accepted: Accepted, second: i64) -> (Bytes, bool) {
        let token = || self.token(page.form(), &Answers::new(), second);
        page.body(second, accepted.contains(GZIP_INDEX), token)
    }

    fn render(
        &self,
        open: &OpenForm,
        presentation: Presentation,
        prefill: &Prefill<'_>,
        token: Option<&str>,
    ) -> Result<Page, minijinja::Error> {
        let limit = open.plan.limits().asset_size_limit;
        let model = FormModel {
            messages: self.messages(presentation),
            prefill,
            max_file_bytes: u64::try_from(limit).unwrap_or(u64::MAX),
        };
        self.templates.form(open, presentation, &model, &self.look(open, presentation), token)
    }

    fn look(&self, open: &OpenForm, presentation: Presentation) -> Look {
        Look::new(&open.form.appearance, presentation, &self.addresses)
    }

    fn plain_look(&self, presentation: Presentation) -> Look {
        Look::new(&Appearance::default(), presentation, &self.addresses)
    }

    /// Returns the token of a page that is shown at `second` with these answers.
    fn token(&self, form: &Form, answers: &Answers, second: i64) -> String {
        let min_seconds = form.spam.min_seconds;
        let needed = honeypot::seconds_to_fill(&form.fields, answers, min_seconds);
        honeypot::token(&self.key, form.id, honeypot::counts_from(second, min_seconds, needed))
    }
}

fn respond(page: Result<Page, minijinja::Error>, status: StatusCode) -> Response {
    match page {
        Ok(page) => page.into_response(status),
        Err(error) => {
            tracing::error!(%error, "a page can't be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
