//! The operations that are suggested, with the scope that each requires.

use domain::scopes::{Action, Resource, Scope};

/// An operation that a suggestion names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tool {
    /// Its operation id.
    pub(super) id: &'static str,
    /// `None` for a public operation.
    pub(super) scope: Option<Scope>,
}

macro_rules! tools {
    ($($name:ident = $id:literal $(, $resource:ident $action:ident)?;)+) => {
        $(pub(super) const $name: Tool = Tool { id: $id, scope: tools!(@scope $($resource $action)?) };)+

        /// Every tool.
        #[cfg(test)]
        pub(super) const ALL: &[Tool] = &[$($name),+];
    };
    (@scope) => { None };
    (@scope $resource:ident $action:ident) => { Some(Scope::new(Resource::$resource, Action::$action)) };
}

tools! {
    ACCOUNT_PLANS = "account.plans", Account Read;
    ANALYTICS_CREATE = "analytics.create", Analytics Create;
    ANALYTICS_QUERY = "analytics.query", Analytics Read;
    ANALYTICS_REALTIME = "analytics.realtime", Analytics Read;
    ASSETS_LIST = "assets.list", Assets Read;
    AUTOMATIONS_CREATE = "automations.create", Automations Create;
    AUTOMATIONS_LOGS = "automations.logs", Automations Read;
    AUTOMATIONS_TEST = "automations.test", Automations Update;
    AUTOMATIONS_UPDATE = "automations.update", Automations Update;
    DELIVERIES_LIST = "deliveries.list", Deliveries Read;
    DEPLOYS_PROCESS = "deploys.process", Deploys Update;
    DEPLOYS_PUBLISH = "deploys.publish", Deploys Update;
    DOMAINS_CREATE = "domains.create", Domains Create;
    DOMAINS_READ = "domains.read", Domains Read;
    ENTRIES_LIST = "entries.list", Entries Read;
    FOLDERS_CREATE = "folders.create", Folders Create;
    FOLDERS_ORGANIZE = "folders.organize", Folders Update;
    FORMS_CREATE = "forms.create", Forms Create;
    FORMS_UPDATE = "forms.update", Forms Update;
    KEYS_CREATE = "keys.create", Keys Create;
    KEYS_LIST = "keys.list", Keys Read;
    KEYS_ROTATE = "keys.rotate", Keys Update;
    LAUNCH_CREATE = "launch.create", Pages Create;
    PAGES_CREATE = "pages.create", Pages Create;
    PAGES_UPDATE = "pages.update", Pages Update;
    STATUS_READ = "status.read", Account Read;
    SUBMISSIONS_LIST = "submissions.list", Submissions Read;
    SUBMISSIONS_READ = "submissions.read", Submissions Read;
    SUBMISSIONS_SUBMIT = "submissions.submit";
    WEBHOOKS_CREATE = "webhooks.create", Webhooks Create;
    WEBHOOKS_TEST = "webhooks.test", Deliveries Create;
}
