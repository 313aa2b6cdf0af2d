//! The operations that screens call, with their methods and paths. A test compares them with the API document.

use http::Method;

/// An operation of the API.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) id: &'static str,
    pub(crate) method: Method,
    /// The path, with the names of its parameters in braces.
    pub(crate) path: &'static str,
}

macro_rules! operations {
    ($($name:ident = $id:literal, $method:ident $path:literal;)+) => {
        $(pub(crate) static $name: Operation = Operation { id: $id, method: Method::$method, path: $path };)+

        #[cfg(test)]
        static ALL: &[&Operation] = &[$(&$name),+];
    };
}

operations! {
    ACCOUNT_READ = "account.read", GET "/api/account";
    STATUS_READ = "status.read", GET "/api/status";
    FORMS_LIST = "forms.list", GET "/api/forms";
    FORMS_READ = "forms.read", GET "/api/forms/{id}";
    SUBMISSIONS_LIST = "submissions.list", GET "/api/forms/{id}/submissions";
    SUBMISSIONS_READ = "submissions.read", GET "/api/forms/{id}/submissions/{subId}";
    SUBMISSIONS_MARK = "submissions.mark", POST "/api/forms/{id}/submissions/{subId}/status";
    SUBMISSIONS_UPDATE = "submissions.update", PATCH "/api/forms/{id}/submissions/{subId}";
    SUBMISSIONS_UPSERT = "submissions.upsert", PUT "/api/forms/{id}/submissions/upsert";
    SUBMISSIONS_DELETE = "submissions.delete", DELETE "/api/forms/{id}/submissions";
    SUBMISSIONS_DELETE_ONE = "submissions.delete_one", DELETE "/api/forms/{id}/submissions/{subId}";
    ANALYTICS_LIST = "analytics.list", GET "/api/analytics/sites";
    ANALYTICS_READ = "analytics.read", GET "/api/analytics/sites/{id}";
    ANALYTICS_CREATE = "analytics.create", POST "/api/analytics/sites";
    ANALYTICS_UPDATE = "analytics.update", PATCH "/api/analytics/sites/{id}";
    ANALYTICS_DELETE = "analytics.delete", DELETE "/api/analytics/sites/{id}";
    ANALYTICS_QUERY = "analytics.query", GET "/api/analytics/query";
    ANALYTICS_REALTIME = "analytics.realtime", GET "/api/analytics/realtime";
    DEPLOYS_LIST = "deploys.list", GET "/api/deploy";
    KEYS_LIST = "keys.list", GET "/api/keys";
    KEYS_CREATE = "keys.create", POST "/api/keys";
    KEYS_ROTATE = "keys.rotate", POST "/api/keys/{id}/rotate";
    KEYS_REVOKE = "keys.revoke", DELETE "/api/keys/{id}";
    WEBHOOKS_LIST = "webhooks.list", GET "/api/webhooks";
    WEBHOOKS_READ = "webhooks.read", GET "/api/webhooks/{id}";
    WEBHOOKS_CREATE = "webhooks.create", POST "/api/webhooks";
    WEBHOOKS_TEST = "webhooks.test", POST "/api/webhooks/{id}/test";
    DELIVERIES_RETRY = "deliveries.retry", POST "/api/webhooks/{id}/deliveries/{deliveryId}/retry";
    DELIVERIES_RETRY_FAILED = "deliveries.retry_failed", POST "/api/webhooks/{id}/retry";
    ACCOUNT_UPDATE = "account.update", PUT "/api/account";
    ACCOUNT_USAGE = "account.usage", GET "/api/account/usage";
    ACCOUNT_PLANS = "account.plans", GET "/api/account/upgrade";
    ACCOUNT_UPGRADE = "account.upgrade", POST "/api/account/upgrade";
    SESSIONS_CURRENT = "sessions.current", GET "/api/session";
    SESSIONS_LIST = "sessions.list", GET "/api/sessions";
    SESSIONS_DELETE = "sessions.delete", DELETE "/api/sessions/{id}";
    HELP_CREATE = "help.create", POST "/api/help";
    ACTIVITY_LIST = "activity.list", GET "/api/activity";
    ANALYTICS_OVERVIEW = "analytics.overview", GET "/api/analytics/overview";
    ANALYTICS_SESSIONS = "analytics.sessions", GET "/api/analytics/sessions";
    ANALYTICS_FUNNEL = "analytics.funnel", POST "/api/analytics/funnel";
    ANALYTICS_DROP_OFF = "analytics.drop_off", POST "/api/analytics/funnel/drop-off";
    ANALYTICS_RETENTION = "analytics.retention", POST "/api/analytics/retention";

    AUTOMATIONS_LIST = "automations.list", GET "/api/automations";
    AUTOMATIONS_READ = "automations.read", GET "/api/automations/{id}";
    AUTOMATIONS_CREATE = "automations.create", POST "/api/automations";
    AUTOMATIONS_UPDATE = "automations.update", PUT "/api/automations/{id}";
    AUTOMATIONS_DELETE = "automations.delete", DELETE "/api/automations/{id}";
    AUTOMATIONS_TEST = "automations.test", POST "/api/automations/{id}/test";
    AUTOMATIONS_LOGS = "automations.logs", GET "/api/automations/{id}/logs";
    AUTOMATIONS_RUN = "automations.run", GET "/api/automations/{id}/runs/{runId}";
    AUTOMATIONS_CANCEL = "automations.cancel", POST "/api/automations/{id}/runs/{runId}/cancel";
    AUTOMATIONS_REPLAY = "automations.replay", POST "/api/automations/{id}/runs/{runId}/replay";
    DELIVERIES_LIST_ALL = "deliveries.list_all", GET "/api/deliveries";
    DELIVERIES_READ = "deliveries.read", GET "/api/deliveries/{deliveryId}";
    WEBHOOKS_UPDATE = "webhooks.update", PATCH "/api/webhooks/{id}";
    WEBHOOKS_DELETE = "webhooks.delete", DELETE "/api/webhooks/{id}";
    WEBHOOKS_ROTATE_SECRET = "webhooks.rotate_secret", POST "/api/webhooks/{id}/rotate-secret";

    FOLDERS_LIST = "folders.list", GET "/api/folders";
    FOLDERS_CREATE = "folders.create", POST "/api/folders";
    FOLDERS_READ = "folders.read", GET "/api/folders/{id}";
    FOLDERS_UPDATE = "folders.update", PUT "/api/folders/{id}";
    FOLDERS_DELETE = "folders.delete", DELETE "/api/folders/{id}";
    FOLDERS_ORGANIZE = "folders.organize", POST "/api/folders/{id}/organize";
    FOLDERS_UNGROUP = "folders.ungroup", POST "/api/folders/{id}/ungroup";
    FORMS_CREATE = "forms.create", POST "/api/forms";
    FORMS_UPDATE = "forms.update", PUT "/api/forms/{id}";
    FORMS_DELETE = "forms.delete", DELETE "/api/forms/{id}";
    SUBMISSIONS_RESULTS = "submissions.results", GET "/api/forms/{id}/submissions/results";
    WORKFLOWS_LIST = "workflows.list", GET "/api/workflows";
    WORKFLOWS_READ = "workflows.read", GET "/api/workflows/{id}";

    SUBDOMAINS_LIST = "subdomains.list", GET "/api/account/subdomains";
    SUBDOMAINS_CREATE = "subdomains.create", POST "/api/account/subdomains";
    SUBDOMAINS_RENAME = "subdomains.rename", PUT "/api/account/subdomain";
    DEPLOYS_CREATE = "deploys.create", POST "/api/deploy";
    DEPLOYS_READ = "deploys.read", GET "/api/deploy/{id}";
    DEPLOYS_PROCESS = "deploys.process", POST "/api/deploy/{id}/process";
    DEPLOYS_PUBLISH = "deploys.publish", POST "/api/deploy/{id}/publish";
    DEPLOYS_ROLLBACK = "deploys.rollback", POST "/api/deploy/{id}/rollback";
    DEPLOYS_DELETE = "deploys.delete", DELETE "/api/deploy/{id}";
    PAGES_LIST = "pages.list", GET "/api/pages";
    PAGES_CREATE = "pages.create", POST "/api/pages";
    PAGES_READ = "pages.read", GET "/api/pages/{id}";
    PAGES_UPDATE = "pages.update", PUT "/api/pages/{id}";
    PAGES_DELETE = "pages.delete", DELETE "/api/pages/{id}";
    VERSIONS_LIST = "versions.list", GET "/api/pages/{id}/versions";
    VERSIONS_READ = "versions.read", GET "/api/pages/{id}/versions/{versionId}";
    VERSIONS_ROLLBACK = "versions.rollback", POST "/api/pages/{id}/rollback";
    ASSETS_LIST = "assets.list", GET "/api/pages/assets";
    ASSETS_CREATE = "assets.create", POST "/api/pages/assets";
    ASSETS_DELETE = "assets.delete", DELETE "/api/pages/assets/{id}";
    ENTRIES_CREATE = "entries.create", POST "/api/pages/{id}/entries";
    ENTRIES_LIST = "entries.list", GET "/api/pages/{id}/entries";
    ENTRIES_DELETE = "entries.delete", DELETE "/api/pages/{id}/entries/{entryId}";
    ENTRIES_ARCHIVES = "entries.archives", GET "/api/pages/archives";
    ENTRIES_RESTORE = "entries.restore", POST "/api/pages/{id}/restore-entries";
    DOMAINS_LIST = "domains.list", GET "/api/account/domains";
    DOMAINS_CREATE = "domains.create", POST "/api/account/domains";
    DOMAINS_CHECK = "domains.check", POST "/api/account/domains/{id}/check";
    DOMAINS_UPDATE = "domains.update", PATCH "/api/account/domains/{id}";
    DOMAINS_DELETE = "domains.delete", DELETE "/api/account/domains/{id}";
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;

    #[test]
    fn every_operation_is_in_the_api_document() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../control-plane/openapi.json");
        let document: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for operation in ALL {
            let method = operation.method.as_str().to_lowercase();
            let found = &document["paths"][operation.path][method]["operationId"];
            assert_eq!(found, operation.id, "{} {}", operation.method, operation.path);
        }
    }
}
