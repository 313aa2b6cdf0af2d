//! A form that was posted from a page of the current account: a session has one account, and another tab may have switched it.

use std::ops::Deref;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::Response;
use http::StatusCode;
use serde_json::Value;

use crate::api_client::{Answer, Refusal};
use crate::form_submission::FormSubmission;
use crate::page::Page;
use crate::state::Console;
use crate::viewer::Viewer;

/// A form of the current account. Every write takes one, so that none is done on another account than the page showed; one
/// without fields takes it as `_`.
#[derive(Debug)]
pub(crate) struct AccountForm {
    /// The account, as `account.read` returns it.
    pub(crate) account: Value,
    pub(crate) form: FormSubmission,
}

impl AccountForm {
    /// Checks that a form was made for the current account.
    ///
    /// # Errors
    /// The page to show instead; nothing was changed.
    pub(super) async fn check(
        console: &Console,
        viewer: &Viewer,
        form: FormSubmission,
    ) -> Result<Self, Box<Response>> {
        let refused = |refusal: &Refusal, account: &Answer| {
            Box::new(Page::refused(refusal).respond(console, viewer, account))
        };
        let account = console.account(viewer).await;
        match account {
            Ok(account) if account["id"].as_str() == form.account() => Ok(Self { account, form }),
            Ok(_) => {
                let detail = "You switched to another account in another tab after this page was made. Nothing was changed. \
                    Switch back and do it again.";
                let refusal =
                    Refusal::new(StatusCode::CONFLICT, "conflict", "Another account is current", detail);
                Err(refused(&refusal, &account))
            }
            Err(ref refusal) => Err(refused(refusal, &account)),
        }
    }
}

impl Deref for AccountForm {
    type Target = FormSubmission;

    fn deref(&self) -> &FormSubmission {
        &self.form
    }
}

impl FromRequest<Console> for AccountForm {
    type Rejection = Response;

    async fn from_request(request: Request, console: &Console) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let Ok(viewer) = Viewer::from_request_parts(&mut parts, console).await;
        let form = FormSubmission::from_request(Request::from_parts(parts, body), console).await?;
        Self::check(console, &viewer, form).await.map_err(|refused| *refused)
    }
}
