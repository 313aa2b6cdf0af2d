//! The variables of an automation: encrypted at rest, and never in a response.

use std::collections::BTreeMap;

use domain::Transient;
use domain::automations::ENV_PURPOSE;
use domain::encryption::{DecryptError, MasterKey, NONCE_BYTES};

/// Values by name.
pub(crate) type Env = BTreeMap<String, String>;

/// The stored variables are unreadable.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    #[error("the variables of an automation: {0}")]
    Sealed(#[from] DecryptError),
    #[error("the variables of an automation are not an object of texts")]
    Format,
}

impl Transient for EnvError {
    fn is_transient(&self) -> bool {
        false
    }
}

/// Encrypts variables; `None` if there are none.
pub(crate) fn seal_env(key: &MasterKey, nonce: [u8; NONCE_BYTES], env: &Env) -> Option<Vec<u8>> {
    let text = serde_json::to_vec(env).unwrap_or_default();
    (!env.is_empty()).then(|| key.seal(ENV_PURPOSE, nonce, &text))
}

/// Decrypts stored variables.
pub(crate) fn open_env(key: &MasterKey, sealed: Option<&[u8]>) -> Result<Env, EnvError> {
    let Some(sealed) = sealed else { return Ok(Env::new()) };
    serde_json::from_slice(&key.open(ENV_PURPOSE, sealed)?).map_err(|_| EnvError::Format)
}
