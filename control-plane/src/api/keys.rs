//! API keys. The secret is shown once, and a key can create only keys with equal or fewer permissions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::keys::{self, KeyKind};
use domain::restrictions::{LISTABLE, Restrictions};
use domain::scopes::{self, Action, Resource, ScopeSet};
use domain::{FieldError, ListBudget, Listed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::credentials::Caller;
use store::keys::{Key, NewKey};
use store::{ListFilter, ListPage};
use uuid::Uuid;
use web::{Challenge, Code, Created, Deletion, Json, Path, Problem, Query, Reply, Sort};

use crate::App;
use crate::call::{Call, scope};
use crate::next_steps::After;

/// Keys read at a time; those that the caller may not see are then filtered out.
const BATCH: i64 = 200;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("keys")
        .post("/api/keys", create, "Create an API key; its secret is shown only once")
        .get("/api/keys", list, "List keys")
        .post("/api/keys/{id}/rotate", rotate, "Rotate a key; the old secret stops working")
        .delete("/api/keys/{id}", revoke, "Revoke a key and its descendants")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateKeyRequest {
    /// Display name.
    #[schemars(length(min = 1, max = keys::LABEL_CHARS_MAX), regex(pattern = r"\S"))]
    label: String,
    /// Scopes such as `pages:read`, `forms:*`, `*:read` or `*`; default: all scopes of the caller.
    #[schemars(length(min = 1), inner(regex(pattern = scopes::PATTERN)))]
    scopes: Option<Vec<String>>,
    /// Restricts the key to this folder.
    folder_id: Option<Uuid>,
    /// Restricts the key to these resources, by type, such as `{"forms": ["…"]}`.
    #[serde(default)]
    #[schemars(extend("propertyNames" = {"enum": LISTABLE.map(Resource::as_str)}))]
    resource_ids: BTreeMap<String, Vec<Uuid>>,
    /// Expiry, at most 90 days ahead; default: the key works until it is revoked.
    expires_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct KeyView {
    id: Uuid,
    /// Display name.
    label: String,
    /// First characters of the secret.
    prefix: String,
    /// Scopes of the key.
    scopes: Vec<String>,
    /// The folder it is restricted to; null for none.
    folder_id: Option<Uuid>,
    /// The resources it is restricted to, by type; a missing type is unrestricted.
    resource_ids: BTreeMap<&'static str, BTreeSet<Uuid>>,
    /// Expiry; null if the key works until it is revoked.
    expires_at: Option<DateTime<Utc>>,
    /// When the key was last used, to the minute; null if never.
    last_used_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct KeySecretResponse {
    /// The key's secret. It is shown only once.
    key: String,
    #[serde(flatten)]
    view: KeyView,
}

web::list_response!(KeyListResponse { keys: KeyView });

#[derive(Debug, Serialize, JsonSchema)]
struct KeyRevocationResponse {
    #[serde(flatten)]
    deleted: Deletion,
    /// Number of revoked keys: the key and its descendants.
    revoked: usize,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RevokeKeyQuery {
    /// Revokes the last key of an unclaimed trial too. Then only its claim link leads to its data.
    #[serde(default)]
    force: bool,
}

async fn create(
    call: Call<scope::KeysCreate>,
    State(app): State<App>,
    Json(request): Json<CreateKeyRequest>,
) -> Result<Created<KeySecretResponse>, Problem> {
    let caller = Arc::clone(&call.caller);
    let mut errors = keys::check(&request.label, request.expires_at, call.now);
    let scopes = read_scopes(request.scopes.as_deref(), &caller).map_err(|wrong| errors.extend(wrong));
    let restrictions =
        Restrictions::read(request.folder_id, &request.resource_ids).map_err(|wrong| errors.extend(wrong));
    let (Ok(scopes), Ok(restrictions), true) = (scopes, restrictions, errors.is_empty()) else {
        return Err(Problem::validation(errors));
    };
    call.check_new(Resource::Keys)?;
    if !is_read_only(scopes) {
        call.require_fresh_sign_in(&app)?;
    }
    let secret_text = keys::make(KeyKind::Live, &app.rng.bytes());
    let new = NewKey {
        id: app.rng.uuid_v7(call.now),
        secret: app.credentials.secret(KeyKind::Live, &secret_text),
        label: request.label.trim().to_owned(),
        scopes,
        restrictions: restrictions.clone().inherit_from(&caller.restrictions),
        expires_at: request.expires_at.or(caller.keys_end_at()),
        parent_id: caller.key_id(),
        created_at: call.now,
    };
    if !caller.may_hold(new.scopes, &new.restrictions, new.expires_at) {
        let detail = "a key can make only keys with equal or fewer permissions: scopes, folder, listed ids and \
                      expiry within its own";
        return Err(Problem::new(Code::InsufficientScope, detail));
    }
    let mut tx = begin(&call, &app).await?;
    if let Some(folder_id) = restrictions.folder_id {
        call.check_id(&mut tx, Resource::Folders, folder_id).await?;
    }
    for (kind, ids) in &restrictions.ids {
        let ids: Vec<Uuid> = ids.iter().copied().collect();
        call.check_ids(&mut tx, *kind, &ids).await?;
    }
    if store::keys::count_keys(&mut tx, call.account_id).await? >= keys::KEYS_MAX {
        let detail = format!("an account can have at most {} keys that are not revoked", keys::KEYS_MAX);
        return Err(Problem::new(Code::Conflict, detail).hint("revoke unused ones: DELETE /api/keys/{id}"));
    }
    store::keys::insert_key(&mut tx, call.account_id, &new).await?;
    call.set_changed(Resource::Keys, new.id, &new.label);
    call.commit(&app, tx, vec![]).await?;

    let view = KeyView {
        id: new.id,
        label: new.label,
        prefix: new.secret.shown_prefix,
        scopes: new.scopes.words(),
        folder_id: new.restrictions.folder_id,
        resource_ids: listed_ids(new.restrictions),
        expires_at: new.expires_at,
        last_used_at: None,
        created_at: new.created_at,
    };
    let next = call.suggestions(&app, After::Key { id: view.id }).await;
    Ok(call.created(KeySecretResponse { key: secret_text, view }).with_next(next))
}

web::list_query!(KeysQuery {
    /// Order by creation; default `oldest`.
    sort: Option<Sort>,
});

async fn list(
    call: Call<scope::KeysRead>,
    State(app): State<App>,
    Query(query): Query<KeysQuery>,
) -> Result<Reply<KeyListResponse>, Problem> {
    let pagination = query.pagination().sorted(query.sort);
    let newest_first = pagination.is_newest_first();
    let (limit, mut after) = pagination.read()?;
    let mut conn = store::acquire(&app.db).await?;
    let (mut rows, mut budget) = (Vec::new(), ListBudget::new(limit));
    let has_more = 'read: loop {
        let batch = store::keys::list_keys(&mut conn, call.account_id, after, newest_first, BATCH).await?;
        after = batch.rows.last().map(Listed::cursor);
        for key in batch.rows.into_iter().filter(|key| is_visible(&call.caller, key)) {
            if !budget.admits(store::keys::listed_bytes(&key)) {
                break 'read true;
            }
            rows.push(key);
        }
        if !batch.has_more {
            break false;
        }
    };
    let filter = ListFilter { newest_first, ..ListFilter::default() };
    Ok(call.sorted_page(ListPage { rows, has_more }, &filter, view))
}

async fn rotate(
    call: Call<scope::KeysUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<KeySecretResponse>, Problem> {
    call.require_fresh_sign_in(&app)?;
    let mut tx = begin(&call, &app).await?;
    let claimed = store::claims::lock_deadline(&mut tx, call.account_id).await?.is_none();
    let mut key = find_accessible(&call, &mut tx, id).await?;
    if !claimed && !may_replace_in_trial(&call, &mut tx, id).await? {
        let detail = "the trial's own key can make a claim link, which gives away the whole account, so until the \
                      trial is claimed only this key itself can replace its secret";
        return Err(Problem::new(Code::InsufficientScope, detail).hint("call this with the trial's own key"));
    }
    // The key of a trial stays a trial key until the trial is claimed.
    let kind = if claimed { KeyKind::Live } else { KeyKind::of_prefix(&key.shown_prefix) };
    let secret_text = keys::make(kind, &app.rng.bytes());
    let secret = app.credentials.secret(kind, &secret_text);
    store::keys::update_secret(&mut tx, call.account_id, &key, &secret, call.now).await?;
    call.set_changed(Resource::Keys, key.id, &key.label);
    call.commit(&app, tx, vec![]).await?;
    app.credentials.invalidate(&[key.fingerprint.clone()]);
    key.shown_prefix = secret.shown_prefix;
    Ok(call.reply(KeySecretResponse { key: secret_text, view: view(key) }))
}

async fn revoke(
    call: Call<scope::KeysDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Query(query): Query<RevokeKeyQuery>,
) -> Result<Reply<KeyRevocationResponse>, Problem> {
    let mut tx = begin(&call, &app).await?;
    // The purge of expired trials locks the account before its keys, too.
    let is_trial = store::claims::lock_deadline(&mut tx, call.account_id).await?.is_some();
    let key = find_accessible(&call, &mut tx, id).await?;
    let revoked = store::keys::revoke_keys(&mut tx, call.account_id, &[key.id], call.now).await?;
    if is_trial && !query.force && !store::keys::has_working(&mut tx, call.account_id, call.now).await? {
        // Without a commit the revocation is undone.
        return Err(last_of_trial(&call, &mut tx, id, revoked.len()).await?);
    }
    call.set_changed(Resource::Keys, key.id, &key.label);
    call.commit(&app, tx, vec![]).await?;
    app.credentials.invalidate(&revoked);
    Ok(call.reply(KeyRevocationResponse { deleted: Deletion::now(), revoked: revoked.len() }))
}

/// Begins a transaction that changes keys, and locks the account's keys: if an ancestor or the folder of a new key is
/// removed meanwhile, the new key must go too. Checks the caller again, because the key cache may be a second old: a
/// secret that was revoked or rotated must not obtain another.
pub(super) async fn begin<S>(call: &Call<S>, app: &App) -> Result<store::Tx, Problem> {
    let mut tx = store::begin(&app.db).await?;
    store::keys::lock_keys(&mut tx, call.account_id).await?;
    if store::credentials::is_current(&mut tx, &call.caller, call.now).await? {
        return Ok(tx);
    }
    let problem =
        Problem::new(Code::Unauthenticated, "this key or session has ended, or the key was rotated");
    Err(match call.caller.key_id() {
        Some(_) => problem.challenge(Challenge::InvalidToken),
        None => problem,
    })
}

/// Returns whether the caller may learn a new secret of a key of an unclaimed trial. With the trial's own key one can
/// make a claim link, so only that key itself may.
async fn may_replace_in_trial<S>(call: &Call<S>, conn: &mut store::Conn, id: Uuid) -> Result<bool, Problem> {
    let is_own = call.caller.key_id() == Some(id);
    Ok(is_own || !store::keys::has_no_parent(conn, call.account_id, id).await?)
}

/// The problem of a revocation of `revoked` keys that would leave an unclaimed trial without a working one.
async fn last_of_trial<S>(
    call: &Call<S>,
    conn: &mut store::Conn,
    id: Uuid,
    revoked: usize,
) -> Result<Problem, Problem> {
    let which =
        if revoked == 1 { "this is the last one" } else { "this one and those made with it are the last" };
    let detail = format!(
        "no working key of this unclaimed trial would be left: {which}. Without a key only the claim link leads to its \
         data"
    );
    let may_rotate = call.require_scope(Resource::Keys, Action::Update).is_ok()
        && may_replace_in_trial(call, conn, id).await?;
    let hint = if may_rotate {
        "replace its secret with POST /api/keys/{id}/rotate, or revoke it with ?force=true"
    } else {
        "revoke it with ?force=true"
    };
    Ok(Problem::new(Code::Conflict, detail).hint(hint))
}

/// Returns a key that the caller may rotate or revoke.
async fn find_accessible<S>(call: &Call<S>, conn: &mut store::Conn, id: Uuid) -> Result<Key, Problem> {
    let key = store::keys::lock_key(conn, call.account_id, id).await?;
    let key = key.ok_or_else(|| Problem::not_found("key"))?;
    if is_visible(&call.caller, &key) {
        return Ok(key);
    }
    Err(Problem::new(Code::InsufficientScope, "this key has more permissions than the calling key"))
}

/// A key sees only keys within its own restrictions: rotating a wider key would reveal that key's new secret.
fn is_visible(caller: &Caller, key: &Key) -> bool {
    caller.may_hold(key.scopes, &key.restrictions, key.expires_at)
        && caller.restrictions.allows(Resource::Keys, key.id, None).is_ok()
}

fn read_scopes(words: Option<&[String]>, caller: &Caller) -> Result<ScopeSet, Vec<FieldError>> {
    let Some(words) = words else { return Ok(caller.scopes) };
    if words.is_empty() {
        let message = "scopes must have at least one item; leave it out for all of your scopes";
        return Err(vec![FieldError::new("scopes", "required", message)]);
    }
    let wrong = |(at, word): (usize, &String)| {
        ScopeSet::parse([word.as_str()]).is_err().then(|| {
            let field = format!("scopes[{at}]");
            let message = format!("{field} is not a scope; examples are `pages:read`, `forms:*` and `*`");
            FieldError::new(field, "unknown_scope", message)
        })
    };
    let errors: Vec<FieldError> = words.iter().enumerate().filter_map(wrong).collect();
    ScopeSet::parse(words.iter().map(String::as_str)).map_err(|_| errors)
}

/// Returns whether a key with these scopes can only read.
fn is_read_only(scopes: ScopeSet) -> bool {
    ScopeSet::parse(["*:read"]).is_ok_and(|reads| scopes.is_subset_of(reads))
}

fn listed_ids(restrictions: Restrictions) -> BTreeMap<&'static str, BTreeSet<Uuid>> {
    restrictions.ids.into_iter().map(|(resource, ids)| (resource.as_str(), ids)).collect()
}

fn view(key: Key) -> KeyView {
    KeyView {
        id: key.id,
        label: key.label,
        prefix: key.shown_prefix,
        scopes: key.scopes.words(),
        folder_id: key.restrictions.folder_id,
        resource_ids: listed_ids(key.restrictions),
        expires_at: key.expires_at,
        last_used_at: key.last_used_at,
        created_at: key.created_at,
    }
}
