//! The guide for agents: what the service does, the first call, three flows, and where the rest is described.

const GUIDE: &str = include_str!("../../templates/reference/llms.md");

/// Returns the guide of an installation.
pub(super) fn write(base_url: &str) -> String {
    GUIDE.replace("{base_url}", base_url)
}
