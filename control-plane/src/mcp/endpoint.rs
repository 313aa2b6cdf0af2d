//! `POST /api/mcp`: checks and admits a request as HTTP, then answers its message.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse, Response};
use domain::addresses::Addresses;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use rmcp::model::ErrorCode;
use store::credentials::Caller;
use url::Url;
use web::{ClientIp, Code, Problem};

use super::era::{self, Era};
use super::gateway::Client;
use super::message::{Message, Refusal, Request, refuse, respond};
use super::metadata::METADATA_PATH;
use super::server::Server;
use super::{body, methods};
use crate::admission::{Hit, hold};
use crate::large_bodies::HandedShare;
use crate::{App, authentication, call};

/// Handles a request. It is admitted as any call of the API is, and so is the call that its message makes.
pub(super) async fn handle(State(server): State<Arc<Server>>, request: axum::extract::Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let app = &server.app;
    if !is_allowed_origin(&parts.headers, &app.addresses) {
        let detail = format!("MCP is answered only to pages of {}", app.addresses.base());
        return Problem::new(Code::ForeignOrigin, detail)
            .hint("send no Origin header outside a browser")
            .into_response();
    }
    let ip = match ClientIp::from_request_parts(&mut parts, app).await {
        Ok(ip) => ip,
        Err(problem) => return problem.into_response(),
    };
    let authenticated = authenticate(app, &parts).await;
    let account_id = authenticated.as_ref().ok().map(|caller| caller.account.id);
    let Hit { headers, rejection } = app.calls.hit(account_id, ip);
    let response = match (authenticated, rejection) {
        (Ok(caller), rejection) => serve(&server, parts, caller, ip, rejection, body).await,
        (Err(_), Some(rejection)) => rejection.into_response(),
        (Err(problem), None) => unauthenticated(app, &parts.headers, problem),
    };
    (headers, response).into_response()
}

/// Returns the caller of a key. A suspended account gets not even a list.
async fn authenticate(app: &App, parts: &Parts) -> Result<Arc<Caller>, Problem> {
    let caller = authentication::authenticate_key(app, &parts.headers).await?;
    call::provide_meta(parts, &caller);
    call::check_not_suspended(&caller)?;
    Ok(caller)
}

/// Reads and answers the message of an authenticated request. The permit is held while the body arrives and until the
/// response is written.
async fn serve(
    server: &Server,
    parts: Parts,
    mut caller: Arc<Caller>,
    ip: ClientIp,
    rejection: Option<Problem>,
    body: Body,
) -> Response {
    let app = &server.app;
    if !is_json(&parts.headers) {
        let refusal = Refusal::new(ErrorCode::INVALID_REQUEST, "Content-Type must be application/json");
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, &refusal.error);
    }
    let announced = match body::announced(&parts.headers) {
        Ok(announced) => announced,
        Err(response) => return *response,
    };
    // The message says in which form a rejection is due, but not every body is worth reading for that.
    if !body::is_small(announced)
        && let Some(problem) = rejection
    {
        return problem.into_response();
    }
    let account_id = caller.account.id;
    let arriving = async {
        let permit = app.calls.acquire(Some(account_id), ip).await;
        let permit = permit.map_err(|problem| Box::new(problem.into_response()))?;
        Ok::<_, Box<Response>>((Arc::new(permit), body::read(app, account_id, announced, body).await?))
    };
    let (arrived, has_waited) = noticing_waits(arriving).await;
    let (permit, arrived) = match arrived {
        Ok(arrived) => arrived,
        Err(response) => return *response,
    };
    if has_waited {
        // The key may have been revoked meanwhile.
        caller = match authenticate(app, &parts).await {
            Ok(caller) => caller,
            Err(problem) => return unauthenticated(app, &parts.headers, problem),
        };
    }
    let share = HandedShare::of_large(arrived.share);
    let message = Message::parse(&arrived.bytes);
    drop(arrived.bytes);
    let client = Client { parts, caller, permit: Arc::clone(&permit), share };
    hold(answer(server, &client, message, rejection).await, permit)
}

/// Returns the output of a future, and whether it had to wait.
async fn noticing_waits<F: Future>(future: F) -> (F::Output, bool) {
    let (mut future, mut has_waited) = (pin!(future), false);
    let output = poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        has_waited |= polled.is_pending();
        polled
    });
    let output = output.await;
    (output, has_waited)
}

/// Answers a message. One beyond the rate is rejected, a call of a tool in its result, as other refusals of the API.
async fn answer(
    server: &Server,
    client: &Client,
    message: Result<Message, Refusal>,
    rejection: Option<Problem>,
) -> Response {
    let headers = &client.parts.headers;
    let request = match (message, &rejection) {
        (Ok(Message::Request(request)), _) => request,
        (_, Some(problem)) => return problem.clone().into_response(),
        (Ok(Message::Response), None) => return StatusCode::ACCEPTED.into_response(),
        (Ok(Message::Notification { method }), None) => {
            return match era::check_notification(headers, &method) {
                Ok(()) => StatusCode::ACCEPTED.into_response(),
                Err(refusal) => refused(None, &refusal, Era::Legacy),
            };
        }
        (Err(refusal), None) => return refused(None, &refusal, Era::Legacy),
    };
    let era = match era::of_request(headers, &request) {
        Ok(era) => era,
        Err(refusal) => return refused(Some(&request), &refusal, Era::Legacy),
    };
    let answered = match rejection {
        None => methods::answer(server, client, &request, era).await,
        Some(problem) if request.method == "tools/call" => {
            Ok(super::call::refuse(client, &request, problem, era).await)
        }
        Some(problem) => return problem.into_response(),
    };
    match answered {
        Ok(message) => respond(StatusCode::OK, message),
        Err(refusal) => refused(Some(&request), &refusal, era),
    }
}

fn refused(request: Option<&Request>, refusal: &Refusal, era: Era) -> Response {
    let status = refusal.status.unwrap_or_else(|| era.status(&refusal.error));
    refuse(status, request.map(|request| &request.id), &refusal.error)
}

/// The 401 names the document that says how to get a key (RFC 9728, 5.1).
fn unauthenticated(app: &App, headers: &HeaderMap, problem: Problem) -> Response {
    let is_unauthenticated = problem.status() == StatusCode::UNAUTHORIZED;
    let mut response = problem.into_response();
    let error = match headers.contains_key(header::AUTHORIZATION) {
        true => ", error=\"invalid_token\"",
        false => "",
    };
    let metadata = format!("{}{METADATA_PATH}", app.addresses.base());
    let challenge = format!("Bearer realm=\"api\"{error}, resource_metadata=\"{metadata}\"");
    if let (true, Ok(challenge)) = (is_unauthenticated, HeaderValue::try_from(challenge)) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// A missing type is taken for JSON, as some clients send none.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return true };
    let kind = kind.to_str().unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// Only pages of this host may call, and on localhost those of any port: a page of another site could otherwise reach an
/// installation behind a firewall (DNS rebinding).
fn is_allowed_origin(headers: &HeaderMap, addresses: &Addresses) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return true };
    let is_local = |url: &Url| {
        let host = url.host_str().unwrap_or_default();
        ["localhost", "127.0.0.1", "[::1]"].contains(&host)
    };
    let is_allowed = origin == addresses.base()
        || addresses.is_local()
            && origin.to_str().is_ok_and(|text| Url::parse(text).is_ok_and(|url| is_local(&url)));
    is_allowed && origins.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_host_are_answered() {
        let allows = |base: &str, origins: &[&'static str]| {
            let addresses = Addresses::new(base, "sites.test").unwrap();
            let mut headers = HeaderMap::new();
            for origin in origins {
                headers.append(header::ORIGIN, (*origin).parse().unwrap());
            }
            is_allowed_origin(&headers, &addresses)
        };
        let (public, local) = ("https://app.example.com", "http://localhost:8080");
        assert!(allows(public, &[]) && allows(public, &["https://app.example.com"]));
        assert!(allows(local, &["http://localhost:6274"]) && allows(local, &["http://127.0.0.1:8092"]));
        for origin in
            ["http://localhost:6274", "https://evil.test", "null", "", "https://app.example.com.evil.test"]
        {
            assert!(!allows(public, &[origin]), "{origin}");
        }
        for origin in ["http://evil.test:8080", "http://shop.localhost:8080", "null"] {
            assert!(!allows(local, &[origin]), "{origin}");
        }
        assert!(!allows(public, &["https://app.example.com", "https://evil.test"]));
    }
}
