//! One order for one certificate. Each step is stored before the next one begins, so that another replica can continue.

use chrono::TimeDelta;
use domain::Transient as _;
use domain::certificates::{ChallengeKind, Delay, KEY_PURPOSE, registered_domain};
use instant_acme::{
    Account, AuthorizationStatus, ChallengeStatus, ChallengeType, Error, Identifier, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256};
use std::time::Duration;
use store::acme;
use store::certificates::{self, DueCertificate, Lease};
use uuid::Uuid;

use super::authorities::ConfiguredAuthority;
use super::chain::{self, ChainFacts};
use super::failure::{AttemptError, Remedy, refuses_replacement, words};
use super::issuer::Issuing;

/// The first interval of polling; each is longer than the one before.
const FIRST_POLL: Duration = Duration::from_millis(100);
/// Pause before an accepted order is stored again.
const STORE_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// How long challenges are answered beyond the time of an attempt.
const CHALLENGE_MARGIN: TimeDelta = TimeDelta::minutes(10);

/// The result of an attempt that did not fail.
pub(super) enum Outcome {
    /// The authority issued the certificate.
    Issued(IssuedOrder),
    /// A limit delays the order.
    Delayed(Delay),
}

/// An issued certificate with its facts.
pub(super) struct IssuedOrder {
    pub(super) chain: String,
    pub(super) facts: ChainFacts,
    pub(super) sealed_key: Vec<u8>,
}

/// Orders a certificate, or continues its order. What the authority lost or rejected without a reason is repeated once.
pub(super) async fn run(
    issuing: &Issuing,
    at: &ConfiguredAuthority,
    due: &mut DueCertificate,
    lease: &Lease,
) -> Result<Outcome, AttemptError> {
    if due.order_directory.as_ref() != Some(&at.directory_url) {
        due.order_url = None;
    }
    let mut tried = Vec::new();
    loop {
        let mut account = None;
        let error = match run_once(issuing, at, &mut account, due, lease).await {
            Ok(outcome) => return Ok(outcome),
            Err(error) => error,
        };
        let Some(remedy) = error.remedy().filter(|remedy| !tried.contains(remedy)) else { return Err(error) };
        tried.push(remedy);
        match remedy {
            Remedy::Repeat => {}
            Remedy::Register => {
                if let Some(unknown) = &account {
                    issuing.authorities.forget_account(&issuing.state, at, unknown).await?;
                }
                abandon(issuing, at, due).await?;
            }
            Remedy::Reorder => abandon(issuing, at, due).await?,
        }
    }
}

/// Leaves an order that the authority does not know any more, so that it does not count beside the next one.
async fn abandon(
    issuing: &Issuing,
    at: &ConfiguredAuthority,
    due: &mut DueCertificate,
) -> Result<(), AttemptError> {
    if due.order_url.take().is_some() {
        let mut conn = store::acquire(&issuing.state.db).await?;
        acme::delete_open_order(&mut conn, &at.directory_url, &due.name).await?;
    }
    Ok(())
}

async fn run_once(
    issuing: &Issuing,
    at: &ConfiguredAuthority,
    used: &mut Option<Account>,
    due: &mut DueCertificate,
    lease: &Lease,
) -> Result<Outcome, AttemptError> {
    let account = used.insert(issuing.authorities.account(&issuing.state, at).await?);
    let mut order = match &due.order_url {
        Some(url) => account.order(url.clone()).await?,
        None => match begin(issuing, at, account, due, lease).await? {
            Ok(order) => order,
            Err(delay) => return Ok(Outcome::Delayed(delay)),
        },
    };
    let sealed_key = due.order_sealed_key.clone().unwrap_or_default();
    let key = open_key(issuing, &sealed_key).map_err(AttemptError::Internal)?;
    let polling =
        RetryPolicy::new().initial_delay(FIRST_POLL).backoff(1.5).timeout(issuing.settings.order_timeout);
    if order.state().status == OrderStatus::Pending {
        prove(issuing, due, &mut order).await?;
        let polled = order.poll_ready(&polling).await;
        // The reason of an invalid order is in its challenges.
        if order.state().status != OrderStatus::Invalid {
            polled?;
        }
    }
    if order.state().status == OrderStatus::Ready {
        let csr = signing_request(&due.name, &key).map_err(AttemptError::Internal)?;
        order.finalize_csr(&csr).await?;
    }
    if order.state().status == OrderStatus::Invalid {
        return Err(refusal(&mut order).await);
    }
    let chain = match order.poll_certificate(&polling).await {
        Ok(chain) => chain,
        Err(_) if order.state().status == OrderStatus::Invalid => return Err(refusal(&mut order).await),
        Err(error) => return Err(error.into()),
    };
    let facts = chain::read(&chain, &due.name, &key, issuing.state.clock.now())
        .map_err(|error| AttemptError::Unusable(error.context("what the authority issued can't be used")))?;
    Ok(Outcome::Issued(IssuedOrder { chain, facts, sealed_key }))
}

/// Begins an order and stores it with a new key; or returns the delay that a limit demands.
async fn begin(
    issuing: &Issuing,
    at: &ConfiguredAuthority,
    account: &Account,
    due: &mut DueCertificate,
    lease: &Lease,
) -> Result<Result<Order, Delay>, AttemptError> {
    let state = &issuing.state;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
        .map_err(|error| AttemptError::Internal(error.into()))?;
    let sealed_key = state.master_key.seal(KEY_PURPOSE, state.rng.bytes(), &key.serialize_der());
    let id = match count(issuing, at, due).await? {
        Ok(id) => id,
        Err(delay) => return Ok(Err(delay)),
    };
    let order = match send(at, account, due).await.map_err(AttemptError::from) {
        Ok(order) => order,
        Err(error) => {
            uncount(issuing, at, due, error.is_refusal().then_some(id)).await?;
            return Err(error);
        }
    };
    // From now on it counts, even if it can't be stored.
    due.order_directory = Some(at.directory_url.clone());
    due.order_url = Some(order.url().to_owned());
    store_order(issuing, at, lease, order.url(), &sealed_key).await?;
    due.order_sealed_key = Some(sealed_key);
    Ok(Ok(order))
}

/// Stores an order that the authority has accepted. While Postgres is unavailable, this is retried: the next attempt would
/// send another order.
async fn store_order(
    issuing: &Issuing,
    at: &ConfiguredAuthority,
    lease: &Lease,
    order_url: &str,
    sealed_key: &[u8],
) -> Result<(), AttemptError> {
    loop {
        let storing = async {
            let mut conn = store::acquire(&issuing.state.db).await?;
            certificates::update_order(&mut conn, lease, &at.directory_url, order_url, sealed_key).await
        };
        match storing.await {
            Ok(true) => return Ok(()),
            Ok(false) => return Err(AttemptError::LeaseLost),
            Err(error) if error.is_transient() => {
                let name = &lease.name;
                tracing::warn!(certificate.name = name, %error, "storing an order failed and is retried");
                pause(STORE_RETRY_INTERVAL).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends an order. A renewal names the certificate that it replaces, if that is from the same authority.
async fn send(at: &ConfiguredAuthority, account: &Account, due: &DueCertificate) -> Result<Order, Error> {
    let identifiers = [Identifier::Dns(due.name.clone())];
    let new_order = || {
        let order = NewOrder::new(&identifiers);
        at.profile.iter().fold(order, |order, profile| order.profile(profile))
    };
    let is_own = due.issuer_directory.as_ref() == Some(&at.directory_url);
    let replaced = due.chain.as_deref().filter(|_| is_own).and_then(chain::identifier);
    if let Some(replaced) = replaced {
        match account.new_order(&new_order().replaces(replaced)).await {
            Err(error) if refuses_replacement(&error) => {}
            sent => return sent,
        }
    }
    account.new_order(&new_order()).await
}

/// Counts an order against the limits, before it is sent: one that was sent and not counted could exceed a limit. Returns its
/// id, or the delay if a limit is exhausted.
async fn count(
    issuing: &Issuing,
    at: &ConfiguredAuthority,
    due: &DueCertificate,
) -> Result<Result<Uuid, Delay>, AttemptError> {
    let (state, limits) = (&issuing.state, &issuing.settings.limits);
    let now = state.clock.now();
    let order = acme::NewOrder {
        id: state.rng.uuid_v7(now),
        directory_url: &at.directory_url,
        name: &due.name,
        registered_domain: registered_domain(&due.name),
        is_exempt: due.chain.is_some() || issuing.own_names.contains(&due.name),
        now,
    };
    let mut tx = store::begin(&state.db).await?;
    let exhausted = acme::lock_exhausted_limits(&mut tx, &order, limits).await?;
    if let Some(delay) = limits.delay(&exhausted, now) {
        store::rollback(tx).await?;
        return Ok(Err(delay));
    }
    acme::insert_order(&mut tx, &order).await?;
    store::commit(tx).await?;
    Ok(Ok(order.id))
}

/// Takes back the count of an order that the authority did not accept. One that it refused still counts as a failure of the
/// name. A crash before this leaves an order that counts once.
pub(super) async fn uncount(
    issuing: &Issuing,
    at: &ConfiguredAuthority,
    due: &DueCertificate,
    refused: Option<Uuid>,
) -> Result<(), AttemptError> {
    let mut conn = store::acquire(&issuing.state.db).await?;
    match refused {
        Some(id) => acme::mark_rejected(&mut conn, id, issuing.state.clock.now()).await?,
        None => acme::delete_open_order(&mut conn, &at.directory_url, &due.name).await?,
    }
    Ok(())
}

/// Publishes the answers to the challenges and asks the authority to check them.
async fn prove(issuing: &Issuing, due: &DueCertificate, order: &mut Order) -> Result<(), AttemptError> {
    let state = &issuing.state;
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        // Any other status is final, and polling finds it.
        if authorization.status != AuthorizationStatus::Pending {
            continue;
        }
        let offered = |kind: &ChallengeType| authorization.challenges.iter().any(|one| one.r#type == *kind);
        let kinds = kinds(&issuing.settings.challenges, due);
        let Some(kind) = kinds.iter().copied().find(|kind| offered(&acme_type(*kind))) else {
            let names: Vec<&str> =
                kinds.iter().map(|kind| kind.map_or("dns-01", ChallengeKind::as_str)).collect();
            let message = format!("The certificate authority offers no challenge of {}.", names.join(", "));
            return Err(AttemptError::Refused(message));
        };
        let Some(mut challenge) = authorization.challenge(acme_type(kind)) else { continue };
        let key_authorization = challenge.key_authorization();
        if let Some(kind) = kind {
            let answer = acme::NewChallenge {
                token: &challenge.token,
                name: &due.name,
                kind,
                key_authorization: key_authorization.as_str(),
                expires_at: state.clock.now() + issuing.settings.order_timeout + CHALLENGE_MARGIN,
            };
            acme::insert_challenge(&mut *store::acquire(&state.db).await?, &answer).await?;
        } else {
            let published = issuing.dns.publish(&key_authorization.dns_value(), state.clock.now()).await;
            published.map_err(AttemptError::Unpublished)?;
        }
        // Another replica may have asked for the check before it died.
        if challenge.status == ChallengeStatus::Pending {
            challenge.set_ready().await?;
        }
    }
    Ok(())
}

/// Returns the kinds of challenges of an attempt in the order of preference; `None` is DNS-01, the only one for wildcards.
fn kinds(preferred: &[ChallengeKind], due: &DueCertificate) -> Vec<Option<ChallengeKind>> {
    if due.name.starts_with("*.") {
        return vec![None];
    }
    let first = ChallengeKind::of_attempt(preferred, due.failed_attempts.unsigned_abs());
    let others = preferred.iter().copied().filter(|kind| Some(*kind) != first);
    first.into_iter().chain(others).map(Some).collect()
}

fn acme_type(kind: Option<ChallengeKind>) -> ChallengeType {
    match kind {
        Some(ChallengeKind::Http01) => ChallengeType::Http01,
        Some(ChallengeKind::TlsAlpn01) => ChallengeType::TlsAlpn01,
        None => ChallengeType::Dns01,
    }
}

/// Returns why an order is invalid: the error of its challenge, in the authority's own words.
async fn refusal(order: &mut Order) -> AttemptError {
    let own = order.state().error.as_ref().map(words);
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        if let Err(error) = authorization.refresh().await {
            return error.into();
        }
        let failed = authorization.challenges.iter().find_map(|challenge| challenge.error.as_ref());
        if let Some(problem) = failed {
            return AttemptError::Refused(words(problem));
        }
    }
    AttemptError::Refused(
        own.unwrap_or_else(|| "The certificate authority declared the order invalid.".to_owned()),
    )
}

fn open_key(issuing: &Issuing, sealed: &[u8]) -> anyhow::Result<KeyPair> {
    let der = issuing.state.master_key.open(KEY_PURPOSE, sealed)?;
    Ok(KeyPair::try_from(der)?)
}

fn signing_request(name: &str, key: &KeyPair) -> anyhow::Result<Vec<u8>> {
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    Ok(params.serialize_request(key)?.der().to_vec())
}

#[expect(clippy::disallowed_methods, reason = "the pause before a retry")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
