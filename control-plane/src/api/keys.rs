//! Keys: what programs call with. A key is shown once and makes only keys that may do no more than it may.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::keys::{self, KeyKind};
use domain::reach::{LISTABLE, Reach};
use domain::scopes::{self, Resource, ScopeSet};
use domain::{Complaint, Cursor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::callers::Caller;
use store::keys::{Key, NewKey};
use uuid::Uuid;
use web::{Code, Created, Deleted, Json, Listed, Paging, Path, Problem, Query, Reply};

use crate::App;
use crate::call::{Call, scope};

/// Keys read at a time while those out of the caller's reach are left out.
const BATCH: i64 = 200;

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("keys")
        .post("/api/keys", create, "Make an API key; it is shown this once")
        .get("/api/keys", list, "List keys, by their first characters")
        .post("/api/keys/{id}/rotate", rotate, "Give a key another text; the old one stops working")
        .delete("/api/keys/{id}", revoke, "Revoke a key and every key it made")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WantedKey {
    /// What you call it.
    #[schemars(length(min = 1, max = keys::LABEL_CHARS_MAX), regex(pattern = r"\S"))]
    label: String,
    /// `pages:read`, `forms:*`, `*:read`, `*`; everything the caller may do unless told otherwise.
    #[schemars(length(min = 1), inner(regex(pattern = scopes::PATTERN)))]
    scopes: Option<Vec<String>>,
    /// The only folder it may touch.
    folder_id: Option<Uuid>,
    /// The only things of a kind it may touch, such as `{"forms": ["…"]}`.
    #[serde(default)]
    #[schemars(extend("propertyNames" = {"enum": LISTABLE.map(Resource::word)}))]
    resource_ids: BTreeMap<String, Vec<Uuid>>,
    /// At most 90 days ahead; it works until revoked unless told otherwise.
    expires_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct KeyView {
    id: Uuid,
    label: String,
    /// Its first characters.
    prefix: String,
    scopes: Vec<String>,
    folder_id: Option<Uuid>,
    resource_ids: BTreeMap<&'static str, BTreeSet<Uuid>>,
    expires_at: Option<DateTime<Utc>>,
    /// To the minute.
    last_used_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct KeyWithText {
    /// The key itself. It is shown this once.
    key: String,
    #[serde(flatten)]
    view: KeyView,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Keys {
    keys: Vec<KeyView>,
    #[serde(flatten)]
    listed: Listed,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Revoked {
    #[serde(flatten)]
    deleted: Deleted,
    /// How many keys stopped working: it and those it made.
    revoked: usize,
}

async fn create(
    call: Call<scope::KeysCreate>,
    State(app): State<App>,
    Json(wanted): Json<WantedKey>,
) -> Result<Created<KeyWithText>, Problem> {
    let caller = Arc::clone(&call.caller);
    let mut complaints = keys::check(&wanted.label, wanted.expires_at, call.now);
    let scopes = read_scopes(wanted.scopes.as_deref(), &caller).map_err(|wrong| complaints.extend(wrong));
    let reach = Reach::read(wanted.folder_id, &wanted.resource_ids).map_err(|wrong| complaints.extend(wrong));
    let (Ok(scopes), Ok(asked), true) = (scopes, reach, complaints.is_empty()) else {
        return Err(Problem::validation(complaints));
    };
    call.check_new(Resource::Keys)?;
    let text = keys::make(KeyKind::Live, &app.rng.bytes());
    let new = NewKey {
        id: app.rng.uuid_v7(call.now),
        secret: app.credentials.secret(KeyKind::Live, &text),
        label: wanted.label.trim().to_owned(),
        scopes,
        reach: asked.clone().inherited_from(&caller.reach),
        expires_at: wanted.expires_at.or(caller.keys_end_at()),
        parent_id: caller.key_id(),
        created_at: call.now,
    };
    if !caller.may_hold(new.scopes, &new.reach, new.expires_at) {
        let detail = "a key can make only keys with equal or fewer permissions: scopes, folder, listed ids and \
                      expiry within its own";
        return Err(Problem::new(Code::InsufficientScope, detail));
    }
    let mut tx = begin(&call, &app).await?;
    if let Some(folder_id) = asked.folder_id {
        call.check_id(&mut tx, Resource::Folders, folder_id).await?;
    }
    for (kind, ids) in &asked.ids {
        let ids: Vec<Uuid> = ids.iter().copied().collect();
        call.check_ids(&mut tx, *kind, &ids).await?;
    }
    store::keys::insert_key(&mut tx, call.account_id, &new).await?;
    app.commit(tx, vec![]).await?;

    let view = KeyView {
        id: new.id,
        label: new.label,
        prefix: new.secret.shown_prefix,
        scopes: new.scopes.words(),
        folder_id: new.reach.folder_id,
        resource_ids: listed_ids(new.reach),
        expires_at: new.expires_at,
        last_used_at: None,
        created_at: new.created_at,
    };
    let rotate = json!({"id": view.id});
    Ok(call.created(KeyWithText { key: text, view }).next(
        "rotate",
        "keys.rotate",
        rotate,
        "Should it ever be seen by somebody else, give it another text",
    ))
}

async fn list(
    call: Call<scope::KeysRead>,
    State(app): State<App>,
    Query(paging): Query<Paging>,
) -> Result<Reply<Keys>, Problem> {
    let (limit, mut after) = paging.read()?;
    let mut conn = store::acquire(&app.db).await?;
    let mut rows = Vec::new();
    let wanted = usize::try_from(limit).unwrap_or_default() + 1;
    while rows.len() < wanted {
        let batch = store::keys::list_keys(&mut conn, call.account_id, after, BATCH).await?;
        after = batch.last().map(cursor);
        let ended = i64::try_from(batch.len()).is_ok_and(|count| count < BATCH);
        rows.extend(batch.into_iter().filter(|key| may_see(&call.caller, key)));
        if ended {
            break;
        }
    }
    let listed = Listed::cut(&mut rows, limit, cursor);
    Ok(call.reply(Keys { keys: rows.into_iter().map(view).collect(), listed: listed.clone() }).part(listed))
}

async fn rotate(
    call: Call<scope::KeysUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<KeyWithText>, Problem> {
    let mut tx = begin(&call, &app).await?;
    let mut key = reachable(&call, &mut tx, id).await?;
    // A trial's own key stays one until somebody has claimed the trial.
    let claimed = call.caller.account.claimed_at.is_some();
    let kind = if claimed { KeyKind::Live } else { KeyKind::of_prefix(&key.shown_prefix) };
    let text = keys::make(kind, &app.rng.bytes());
    let secret = app.credentials.secret(kind, &text);
    store::keys::update_secret(&mut tx, call.account_id, &key, &secret, call.now).await?;
    app.commit(tx, vec![]).await?;
    app.credentials.invalidate(&[key.fingerprint.clone()]);
    key.shown_prefix = secret.shown_prefix;
    Ok(call.reply(KeyWithText { key: text, view: view(key) }))
}

async fn revoke(
    call: Call<scope::KeysDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Revoked>, Problem> {
    let mut tx = begin(&call, &app).await?;
    let key = reachable(&call, &mut tx, id).await?;
    let revoked = store::keys::revoke_keys(&mut tx, call.account_id, &[key.id], call.now).await?;
    app.commit(tx, vec![]).await?;
    app.credentials.invalidate(&revoked);
    Ok(call.reply(Revoked { deleted: Deleted::now(), revoked: revoked.len() }))
}

/// Begins a change of the account's keys. Nobody else changes any meanwhile: were an ancestor or the folder of a new
/// key to end just now, it must end too. And the caller, who may have been remembered for a second, is looked at
/// again: with a text that was revoked or rotated one must not get another.
async fn begin<S>(call: &Call<S>, app: &App) -> Result<store::Tx, Problem> {
    let mut tx = store::begin(&app.db).await?;
    store::keys::lock_all(&mut tx, call.account_id).await?;
    if store::callers::is_current(&mut tx, &call.caller, call.now).await? {
        return Ok(tx);
    }
    Err(Problem::new(Code::Unauthenticated, "this key or session has just ended, or the key was rotated"))
}

/// A key that the caller may rotate or revoke.
async fn reachable<S>(call: &Call<S>, conn: &mut store::Conn, id: Uuid) -> Result<Key, Problem> {
    let key = store::keys::lock_key(conn, call.account_id, id).await?;
    let key = key.ok_or_else(|| Problem::not_found("key"))?;
    if may_see(&call.caller, &key) {
        return Ok(key);
    }
    Err(Problem::new(Code::InsufficientScope, "this key may do more than the one that asks"))
}

/// A key sees only keys that lie within its own restrictions: else one that may rotate keys would read the text
/// of a wider one.
fn may_see(caller: &Caller, key: &Key) -> bool {
    caller.may_hold(key.scopes, &key.reach, key.expires_at)
        && caller.reach.covers(Resource::Keys, key.id, None).is_ok()
}

fn read_scopes(words: Option<&[String]>, caller: &Caller) -> Result<ScopeSet, Vec<Complaint>> {
    let Some(words) = words else { return Ok(caller.scopes) };
    if words.is_empty() {
        let message = "scopes must name at least one; leave it out for everything you may do";
        return Err(vec![Complaint::new("scopes", "required", message)]);
    }
    let wrong = |(at, word): (usize, &String)| {
        ScopeSet::parse([word.as_str()]).is_err().then(|| {
            let field = format!("scopes[{at}]");
            let message = format!("{field} is no scope; one is written like `pages:read`, `forms:*` or `*`");
            Complaint::new(field, "unknown_scope", message)
        })
    };
    let complaints: Vec<Complaint> = words.iter().enumerate().filter_map(wrong).collect();
    ScopeSet::parse(words.iter().map(String::as_str)).map_err(|_| complaints)
}

fn cursor(key: &Key) -> Cursor {
    Cursor { created_at: key.created_at, id: key.id }
}

fn listed_ids(reach: Reach) -> BTreeMap<&'static str, BTreeSet<Uuid>> {
    reach.ids.into_iter().map(|(resource, ids)| (resource.word(), ids)).collect()
}

fn view(key: Key) -> KeyView {
    KeyView {
        id: key.id,
        label: key.label,
        prefix: key.shown_prefix,
        scopes: key.scopes.words(),
        folder_id: key.reach.folder_id,
        resource_ids: listed_ids(key.reach),
        expires_at: key.expires_at,
        last_used_at: key.last_used_at,
        created_at: key.created_at,
    }
}
