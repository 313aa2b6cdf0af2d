//! Calls that do several things at once, all or nothing: launch and pipeline; and the status, which shows the result.

mod launch;
mod launch_access;
mod launch_races;
mod pipeline;
mod pipeline_access;
mod status;

use axum::body::Body;
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use service::Clock;
use uuid::Uuid;

use crate::harness::Api;
use crate::no_side_effects::Snapshot;

fn page(slug: &str) -> Value {
    json!({"slug": slug, "title": "T", "html": format!("<p>{slug}")})
}

/// `object` with these members.
fn with(mut object: Value, members: Value) -> Value {
    object.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    object
}

async fn launch(api: &Api, key: &str, body: &Value) -> (StatusCode, Value) {
    api.send(Method::POST, "/api/launch", Some(key), body).await
}

async fn get(api: &Api, key: &str, path: &str) -> Value {
    let (status, response) = api.send(Method::GET, path, Some(key), &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{path}: {response}");
    response
}

async fn projects(api: &Api, key: &str) -> Value {
    get(api, key, "/api/account/usage").await["usage"]["projects"]["used"].clone()
}

/// Creates a folder, and a key that is restricted to it.
async fn folder_key(api: &Api, key: &str, account_id: Uuid) -> (Value, String) {
    let (_, folder) = api.send(Method::POST, "/api/folders", Some(key), &json!({"name": "F"})).await;
    let folder_id = Some(folder["id"].as_str().unwrap().parse().unwrap());
    let restrictions = Restrictions { folder_id, ..Restrictions::default() };
    let (_, restricted) = api.insert_key(account_id, ScopeSet::FULL, restrictions, None).await;
    (folder["id"].clone(), restricted)
}

/// Sends a call that must fail with this status and code, and must change nothing.
async fn refused(api: &Api, key: &str, path: &str, body: &Value, expected: (u16, &str)) -> Value {
    let before = Snapshot::take(api).await;
    let (status, problem) = api.send(Method::POST, path, Some(key), body).await;
    let code = problem["code"].as_str().unwrap_or_default();
    assert_eq!((status.as_u16(), code), expected, "{body} -> {problem}");
    assert_eq!(before.check().await, Ok(()), "{body} -> {problem}");
    problem
}

/// Makes inserts into a table wait until the returned transaction ends.
async fn hold_inserts(api: &Api, table: &str) -> store::Tx {
    let statements = format!(
        "create function held() returns trigger language plpgsql as $$ begin
             perform pg_advisory_xact_lock(hashtextextended('held', 0)); return new; end $$;
         create trigger held before insert on {table} for each row execute function held()"
    );
    api.execute(&statements).await.unwrap();
    let mut holder = api.begin().await;
    let now = Clock::system().now();
    store::subdomain_names::reserve_name(&mut holder, Uuid::nil(), "held", now).await.unwrap();
    holder
}

/// A POST under an `Idempotency-Key`.
fn once(key: &str, path: &str, body: &Value) -> Request<Body> {
    Request::post(path)
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("idempotency-key", "once")
        .body(Body::from(body.to_string()))
        .unwrap()
}
