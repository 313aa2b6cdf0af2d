//! Files of sites: assets and deploys.

mod assets;
mod deploys;
