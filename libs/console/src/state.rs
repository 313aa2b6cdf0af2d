//! The state of all screens.

use std::sync::Arc;

use serde_json::Value;
use service::{Clock, Rng};

use crate::api_client::operations::ACCOUNT_READ;
use crate::api_client::{Answer, ApiClient, Call};
use crate::assets::Assets;
use crate::file_store::FileStore;
use crate::viewer::Viewer;

/// The state of all screens. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Console {
    pub(crate) assets: Arc<Assets>,
    pub(crate) api: ApiClient,
    pub(crate) document: Arc<Value>,
    pub(crate) file_store: FileStore,
    pub(crate) clock: Clock,
    pub(crate) rng: Rng,
}

impl Console {
    /// Calls an operation for a viewer.
    pub(crate) async fn call(&self, viewer: &Viewer, call: Call) -> Answer {
        self.api.call(viewer, call).await
    }

    /// Returns the viewer's current account.
    pub(crate) async fn account(&self, viewer: &Viewer) -> Answer {
        self.call(viewer, Call::of(&ACCOUNT_READ)).await
    }

    pub(crate) fn new_idempotency_key(&self) -> String {
        self.rng.uuid_v7(self.clock.now()).simple().to_string()
    }

    /// Whether cookies may be sent over https only.
    pub(crate) fn is_secure(&self) -> bool {
        self.assets.base.starts_with("https:")
    }
}
