//! What all requests share: the catalog, its tools, and the way to call them.

use std::sync::Arc;

use rmcp::model::{
    Implementation, JsonObject, PromptsCapability, ProtocolVersion, ResourcesCapability, ServerCapabilities,
    ServerConfig, ToolsCapability,
};

use super::gateway::Gateway;
use super::tools::Tools;
use crate::App;
use crate::catalog::Catalog;

const INSTRUCTIONS: &str = "Publish pages and sites, create forms, webhooks, automations and analytics. Begin with \
    status_read. search_api finds any of the API's operations, describe_api returns its schema, and call_api_read, \
    call_api_write and call_api_delete call it. `_next` in an answer suggests the next call: its tool, and its params.";

/// The endpoint's state.
pub(super) struct Server {
    pub(super) app: App,
    pub(super) catalog: Arc<Catalog>,
    pub(super) tools: Tools,
    pub(super) gateway: Gateway,
}

impl Server {
    pub(super) fn new(app: &App, gateway: Gateway, catalog: Arc<Catalog>) -> Self {
        Self { app: app.clone(), tools: Tools::new(&catalog), catalog, gateway }
    }

    /// Describes the server.
    pub(super) fn config(&self, version: ProtocolVersion) -> ServerConfig {
        let itself = Implementation::new("web-runtime", env!("CARGO_PKG_VERSION"))
            .with_title("Web Runtime")
            .with_website_url(self.app.addresses.base());
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        capabilities.resources = Some(ResourcesCapability::default());
        capabilities.prompts = Some(PromptsCapability::default());
        // Later versions have no `logging/setLevel`.
        capabilities.logging = version.has_initialize().then(JsonObject::default);
        ServerConfig::new(capabilities)
            .with_server_info(itself)
            .with_instructions(INSTRUCTIONS)
            .with_protocol_version(version)
    }
}
