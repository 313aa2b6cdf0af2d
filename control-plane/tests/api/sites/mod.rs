//! Files of sites: assets and deploys.

mod announced;
mod announced_attacks;
mod assets;
mod deploy_limits;
mod deploys;
mod dry_run;
mod kept_files;
mod owner;
mod preview_limits;
mod previews;
mod publish_lock;
mod site_rules;
mod static_sites;
