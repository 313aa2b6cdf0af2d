//! Creates an account without a trial, as the first one of an installation.

use anyhow::{Context as _, Result, ensure};
use contract::Change;
use domain::answers::is_email;
use domain::keys::{self, KeyKind};
use domain::peppers::Peppers;
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use domain::subdomains;
use serde_json::json;
use service::Rng;
use store::identities::{self, ProviderIdentity};
use store::keys::{NewKey, Secret};
use store::{Conn, accounts, claims, outbox, subdomain_names};
use uuid::Uuid;

use super::changes::parse_plan;
use crate::audit::Operator;

/// The issuer of identities that an operator vouches for. No provider has it, so none can sign in as them.
const ISSUER: &str = "operator";

/// An account to create.
#[derive(Debug)]
pub struct NewAccount<'a> {
    /// Its owner's address, for mails.
    pub email: &'a str,
    /// `free`, `pro` or `scale`.
    pub plan: &'a str,
    /// The label of its first key.
    pub key_label: &'a str,
}

/// A created account.
#[derive(Debug)]
pub struct CreatedAccount {
    pub id: Uuid,
    /// The name of its first subdomain.
    pub subdomain: String,
    /// The secret of its first key, with all permissions. Only its fingerprint is stored.
    pub key: String,
}

/// Creates a permanent account that belongs to an e-mail address, with a subdomain and a key.
pub async fn create_account(
    conn: &mut Conn,
    operator: &Operator,
    rng: &Rng,
    peppers: &Peppers,
    new: &NewAccount<'_>,
) -> Result<CreatedAccount> {
    let (now, plan) = (operator.now, parse_plan(new.plan)?);
    let email = new.email.trim();
    ensure!(is_email(email), "`{email}` is not an e-mail address");
    let mistakes = keys::check(new.key_label, None, now);
    ensure!(mistakes.is_empty(), "--key-label must have 1 to {} characters", keys::LABEL_CHARS_MAX);

    let identity = ProviderIdentity {
        issuer: ISSUER.to_owned(),
        subject: email.to_lowercase(),
        email: Some(email.to_owned()),
        email_verified: true,
        name: None,
    };
    let identity = identities::upsert_identity(conn, rng.uuid_v7(now), &identity, now).await?;
    let id = rng.uuid_v7(now);
    claims::insert_claimed(conn, id, now).await?;
    identities::insert_account(conn, id, identity, None, now).await?;
    accounts::update_plan(conn, id, plan).await?;

    let key = keys::make(KeyKind::Live, &rng.bytes());
    let new_key = NewKey {
        id: rng.uuid_v7(now),
        secret: Secret::new(peppers, KeyKind::Live, &key),
        label: new.key_label.trim().to_owned(),
        scopes: ScopeSet::FULL,
        restrictions: Restrictions::default(),
        expires_at: None,
        parent_id: None,
        created_at: now,
    };
    store::keys::insert_key(conn, id, &new_key).await?;
    let suggest = || subdomains::suggest(rng.bytes());
    let subdomain = subdomain_names::insert_first(conn, id, rng.uuid_v7(now), now, suggest).await?;
    let subdomain = subdomain.context("found no free site name; run the command again")?;
    outbox::insert_changes(conn, &[Change::Host { host: subdomain.clone() }], now).await?;

    let detail = json!({
        "email": email,
        "plan": plan.as_str(),
        "key": new_key.secret.shown_prefix,
        "subdomain": subdomain,
    });
    operator.record(conn, "admin create-account", Some(&id.to_string()), detail).await?;
    Ok(CreatedAccount { id, subdomain, key })
}
