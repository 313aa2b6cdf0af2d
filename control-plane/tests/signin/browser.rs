//! A minimal browser: it stores cookies, sends `Origin` and follows redirects.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;
use url::Url;

use crate::fixture::BASE;
use crate::provider::Provider;

/// A response.
#[derive(Debug)]
pub(crate) struct BrowserResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl BrowserResponse {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

pub(crate) async fn send(
    router: &Router,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> BrowserResponse {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    BrowserResponse {
        status: head.status,
        headers: head.headers,
        text: String::from_utf8(bytes.to_vec()).unwrap(),
    }
}

#[derive(Clone)]
pub(crate) struct Browser {
    router: Router,
    pub(crate) cookies: BTreeMap<String, String>,
}

impl Browser {
    pub(crate) fn new(router: Router) -> Self {
        Self { router, cookies: BTreeMap::new() }
    }

    pub(crate) async fn get(&mut self, path: &str) -> BrowserResponse {
        self.send(Method::GET, path, &[], "").await
    }

    /// Posts JSON with the origin of this host.
    pub(crate) async fn post_json(&mut self, path: &str, body: &Value) -> BrowserResponse {
        let headers = [("content-type", "application/json"), ("origin", BASE)];
        self.send(Method::POST, path, &headers, &body.to_string()).await
    }

    /// Deletes with the origin of this host.
    pub(crate) async fn delete(&mut self, path: &str) -> BrowserResponse {
        self.send(Method::DELETE, path, &[("origin", BASE)], "").await
    }

    /// Posts a form with the origin of this host.
    pub(crate) async fn post(&mut self, path: &str, form: &[(&str, &str)]) -> BrowserResponse {
        self.post_from(Some(BASE), path, form).await
    }

    /// Posts a form with this origin.
    pub(crate) async fn post_from(
        &mut self,
        origin: Option<&str>,
        path: &str,
        form: &[(&str, &str)],
    ) -> BrowserResponse {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let mut headers = vec![("content-type", "application/x-www-form-urlencoded")];
        headers.extend(origin.map(|origin| ("origin", origin)));
        self.send(Method::POST, path, &headers, &body).await
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> BrowserResponse {
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let cookies = cookies.join("; ");
        let mut headers = headers.to_vec();
        headers.push(("accept", "text/html,application/xhtml+xml"));
        if !cookies.is_empty() {
            headers.push(("cookie", &cookies));
        }
        let mut response = send(&self.router, method, path, &headers, body).await;
        // The templates escape every slash.
        response.text = response.text.replace("&#x2f;", "/");
        for set in response.headers.get_all("set-cookie") {
            let (pair, attributes) = set.to_str().unwrap().split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0;") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        response
    }

    /// Starts a sign-in and returns the provider's URL.
    pub(crate) async fn begin(&mut self, name: &str, return_to: &str) -> Url {
        let query =
            form_urlencoded::Serializer::new(String::new()).append_pair("returnTo", return_to).finish();
        let response = self.get(&format!("/api/auth/oauth/{name}?{query}")).await;
        assert_eq!(response.status, StatusCode::SEE_OTHER, "{}", response.text);
        response.header("location").parse().unwrap()
    }

    /// Calls the callback with the provider's query.
    pub(crate) async fn call_callback(&mut self, name: &str, query: &str) -> BrowserResponse {
        self.get(&format!("/api/auth/oauth/{name}/callback?{query}")).await
    }

    /// Signs in as `subject`, from the redirect to the callback.
    pub(crate) async fn sign_in(
        &mut self,
        name: &str,
        provider: &Provider,
        subject: &str,
        return_to: &str,
    ) -> BrowserResponse {
        let provider_url = self.begin(name, return_to).await;
        let params = provider.approve(&provider_url, subject);
        self.call_callback(name, &params).await
    }

    /// Returns the API's response for the current account.
    pub(crate) async fn account(&mut self) -> (StatusCode, Value) {
        let response = self.get("/api/account").await;
        (response.status, serde_json::from_str(&response.text).unwrap())
    }

    /// Whether the server accepts the session.
    pub(crate) async fn is_signed_in(&mut self) -> bool {
        self.get("/account").await.status == StatusCode::OK
    }
}
