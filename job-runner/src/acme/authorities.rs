//! The configured certificate authorities and this installation's accounts there.

use std::path::Path;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use domain::certificates::{self, ACCOUNT_PURPOSE, Authority};
use instant_acme::{Account, AccountCredentials, ExternalAccountKey, NewAccount};
use store::acme;
use store::certificates::DueCertificate;
use tokio::sync::Mutex;

use super::failure::AttemptError;
use super::http::AcmeHttp;
use super::settings::Settings;
use crate::state::JobState;

/// The certificate authorities.
pub(super) struct Authorities {
    first: ConfiguredAuthority,
    fallback: Option<ConfiguredAuthority>,
    fallback_after: TimeDelta,
    email: String,
    http: AcmeHttp,
}

/// One certificate authority.
pub(super) struct ConfiguredAuthority {
    pub(super) directory_url: String,
    pub(super) profile: Option<String>,
    /// Id and key of the external account binding.
    external_account: Option<(String, Vec<u8>)>,
    /// The account, once it was used. Held while it is loaded or registered, so that this process registers only one.
    account: Mutex<Option<KnownAccount>>,
}

struct KnownAccount {
    account: Account,
    sealed_credentials: Vec<u8>,
}

impl Authorities {
    pub(super) fn new(settings: &Settings) -> anyhow::Result<Self> {
        let configured = |url: &str, profile: &str, key_id: &str, key_file: &Path, prefix: &str| {
            anyhow::Ok(ConfiguredAuthority {
                directory_url: url.to_owned(),
                profile: Some(profile.to_owned()).filter(|profile| !profile.is_empty()),
                external_account: external_account(key_id, key_file, prefix)?,
                account: Mutex::default(),
            })
        };
        let first = configured(
            &settings.directory_url,
            &settings.profile,
            &settings.eab_key_id,
            &settings.eab_hmac_key_file,
            "",
        )?;
        let fallback = configured(
            &settings.fallback_directory_url,
            &settings.fallback_profile,
            &settings.fallback_eab_key_id,
            &settings.fallback_eab_hmac_key_file,
            "fallback_",
        )?;
        Ok(Self {
            first,
            fallback: (!fallback.directory_url.is_empty()).then_some(fallback),
            fallback_after: TimeDelta::from_std(settings.fallback_after)?,
            email: settings.email.clone(),
            http: AcmeHttp::new(&settings.ca_file, settings.request_timeout)?,
        })
    }

    /// Returns the authority of an attempt.
    pub(super) fn choose(&self, due: &DueCertificate, now: DateTime<Utc>) -> &ConfiguredAuthority {
        let failed_attempts = due.failed_attempts.unsigned_abs();
        match certificates::authority(due.failing_since, failed_attempts, self.fallback_after, now) {
            Authority::First => &self.first,
            Authority::Fallback => self.fallback.as_ref().unwrap_or(&self.first),
        }
    }

    /// Returns the other authority, if there is one.
    pub(super) fn other(&self, at: &ConfiguredAuthority) -> Option<&ConfiguredAuthority> {
        let fallback = self.fallback.as_ref()?;
        Some(if at.directory_url == self.first.directory_url { fallback } else { &self.first })
    }

    /// Returns when an order that limits delay may go to the other authority.
    pub(super) fn fallback_at(&self, due: &DueCertificate, now: DateTime<Utc>) -> DateTime<Utc> {
        certificates::fallback_at(due.failing_since, self.fallback_after, now)
    }

    /// Returns a configured authority by its directory.
    pub(super) fn find(&self, directory_url: &str) -> Option<&ConfiguredAuthority> {
        let mut configured = std::iter::once(&self.first).chain(&self.fallback);
        configured.find(|at| at.directory_url == directory_url)
    }

    /// Returns the account at an authority. The first call of all replicas registers it.
    pub(super) async fn account(
        &self,
        state: &JobState,
        at: &ConfiguredAuthority,
    ) -> Result<Account, AttemptError> {
        let mut known = at.account.lock().await;
        if let Some(known) = known.as_ref() {
            return Ok(known.account.clone());
        }
        let mut conn = store::acquire(&state.db).await?;
        let stored = acme::find_account(&mut conn, &at.directory_url).await?;
        drop(conn);
        let (account, sealed_credentials) = match stored {
            Some(sealed) => (self.restore(state, &sealed).await?, sealed),
            None => self.register(state, at).await?,
        };
        *known = Some(KnownAccount { account: account.clone(), sealed_credentials });
        Ok(account)
    }

    /// Deletes an account that the authority does not know any more, unless another order replaced it already.
    pub(super) async fn forget_account(
        &self,
        state: &JobState,
        at: &ConfiguredAuthority,
        unknown: &Account,
    ) -> Result<(), AttemptError> {
        let cached = at.account.lock().await.take_if(|known| known.account.id() == unknown.id());
        let Some(known) = cached else { return Ok(()) };
        let mut conn = store::acquire(&state.db).await?;
        acme::delete_account(&mut conn, &at.directory_url, &known.sealed_credentials).await?;
        let url = &at.directory_url;
        tracing::warn!(acme.directory = url, "a certificate authority does not know our account any more");
        Ok(())
    }

    async fn restore(&self, state: &JobState, sealed: &[u8]) -> Result<Account, AttemptError> {
        let credentials = state.master_key.open(ACCOUNT_PURPOSE, sealed).context("the ACME account");
        let credentials: AccountCredentials = credentials
            .and_then(|json| Ok(serde_json::from_slice(&json)?))
            .map_err(AttemptError::Internal)?;
        let builder = Account::builder_with_http(Box::new(self.http.clone()));
        Ok(builder.from_credentials(credentials).await?)
    }

    async fn register(
        &self,
        state: &JobState,
        at: &ConfiguredAuthority,
    ) -> Result<(Account, Vec<u8>), AttemptError> {
        let contact = format!("mailto:{}", self.email);
        let contacts = [contact.as_str()];
        let new = NewAccount {
            contact: if self.email.is_empty() { &[] } else { &contacts },
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let external = at.external_account.as_ref();
        let external = external.map(|(id, key)| ExternalAccountKey::new(id.clone(), key));
        let builder = Account::builder_with_http(Box::new(self.http.clone()));
        let (account, credentials) =
            builder.create(&new, at.directory_url.clone(), external.as_ref()).await?;
        let json = serde_json::to_vec(&credentials).map_err(|error| AttemptError::Internal(error.into()))?;
        let sealed = state.master_key.seal(ACCOUNT_PURPOSE, state.rng.bytes(), &json);
        let mut conn = store::acquire(&state.db).await?;
        let stored = acme::insert_account(&mut conn, &at.directory_url, &sealed, state.clock.now()).await?;
        drop(conn);
        if stored == sealed {
            return Ok((account, sealed));
        }
        // Another replica registered an account first.
        Ok((self.restore(state, &stored).await?, stored))
    }
}

/// Reads the external account binding; `None` if no key id is set.
fn external_account(
    key_id: &str,
    key_file: &Path,
    prefix: &str,
) -> anyhow::Result<Option<(String, Vec<u8>)>> {
    if key_id.is_empty() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(key_file)
        .with_context(|| format!("acme.{prefix}eab_hmac_key_file {} can't be read", key_file.display()))?;
    // Authorities show the key in base64url without padding; some tools add it.
    let key = URL_SAFE_NO_PAD.decode(text.trim().trim_end_matches('=')).ok();
    let key = key.filter(|key| !key.is_empty());
    let key = key.with_context(|| format!("acme.{prefix}eab_hmac_key_file must hold a key in base64url"))?;
    Ok(Some((key_id.to_owned(), key)))
}
