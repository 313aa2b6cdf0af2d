//! A browser of one account: sends the session cookie and `Origin`, and reads pages.

use axum::body::Body;
use domain::plans::Plan;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use uuid::Uuid;

use crate::harness::Api;

pub(super) const BASE: &str = "http://localhost:8080";

/// A page.
pub(super) struct PageResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) html: String,
}

impl PageResponse {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Fails unless the page has this text.
    #[track_caller]
    pub(super) fn contains(&self, text: &str) -> &Self {
        assert!(self.html.contains(text), "{} lacks {text:?}:\n{}", self.status, self.html);
        self
    }

    /// Returns the value of a hidden field.
    #[track_caller]
    pub(super) fn hidden(&self, name: &str) -> String {
        let before = format!("name=\"{name}\" value=\"");
        let rest = self.html.split_once(&before).unwrap().1;
        rest.split('"').next().unwrap().to_owned()
    }
}

/// A signed-in person.
pub(super) struct Visitor<'a> {
    api: &'a Api,
    pub(super) cookie: String,
    pub(super) key: String,
    pub(super) account_id: Uuid,
}

impl<'a> Visitor<'a> {
    pub(super) async fn sign_in(api: &'a Api) -> Self {
        let (key, account_id) = api.trial_on(Plan::Pro).await;
        Self::of(api, &key, account_id).await
    }

    /// A person of an account that exists.
    pub(super) async fn of(api: &'a Api, key: &str, account_id: Uuid) -> Self {
        let key = key.to_owned();
        Self { api, cookie: api.sign_in(account_id).await, key, account_id }
    }

    pub(super) async fn get(&self, path: &str) -> PageResponse {
        self.get_with(path, &[]).await
    }

    pub(super) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> PageResponse {
        let headers = [&[("cookie", self.cookie.as_str()), ("accept", "text/html")], headers].concat();
        send(self.api, Method::GET, path, &headers, "").await
    }

    /// Posts a form from a page of this host.
    pub(super) async fn post(&self, path: &str, form: &[(&str, &str)]) -> PageResponse {
        self.post_from(BASE, path, form).await
    }

    pub(super) async fn post_from(&self, origin: &str, path: &str, form: &[(&str, &str)]) -> PageResponse {
        self.post_with(path, form, &[("origin", origin)]).await
    }

    /// Posts a form with further headers; `Origin` is this host's unless they have one.
    pub(super) async fn post_with(
        &self,
        path: &str,
        form: &[(&str, &str)],
        further: &[(&str, &str)],
    ) -> PageResponse {
        let origin = further.iter().find(|(name, _)| *name == "origin").map_or(BASE, |(_, value)| value);
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let headers = [
            ("cookie", self.cookie.as_str()),
            ("origin", origin),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let further: Vec<_> = further.iter().copied().filter(|(name, _)| *name != "origin").collect();
        send(self.api, Method::POST, path, &[&headers[..], &further].concat(), &body).await
    }

    /// Posts a body of any type from a page of this host.
    pub(super) async fn post_bytes(&self, path: &str, content_type: &str, body: Vec<u8>) -> PageResponse {
        let headers = [("cookie", self.cookie.as_str()), ("origin", BASE), ("content-type", content_type)];
        send_bytes(self.api, Method::POST, path, &headers, body).await
    }
}

pub(super) async fn send(
    api: &Api,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> PageResponse {
    send_bytes(api, method, path, headers, body.as_bytes().to_vec()).await
}

async fn send_bytes(
    api: &Api,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> PageResponse {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = api.raw_response(request.body(Body::from(body)).unwrap()).await;
    let (head, body) = response.into_parts();
    let html = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    PageResponse { status: head.status, headers: head.headers, html }
}
