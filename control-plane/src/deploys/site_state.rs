//! The pages of a site and the room of its account before a deploy, which decide what becomes a page.

use std::collections::{BTreeMap, BTreeSet};

use domain::plans::UNLIMITED;
use store::Tx;
use store::deploys::undo::FoundPage;
use web::Problem;

use crate::call::Call;

/// A site before a deploy.
#[derive(Debug, Clone)]
pub(crate) struct SiteState {
    /// Slugs of deployed pages by the paths of their files.
    pub(super) by_path: BTreeMap<String, String>,
    /// Slugs of all pages.
    pub(super) slugs: BTreeSet<String>,
    /// New pages that the plan allows; `None` without a limit.
    pub(super) projects_left: Option<u64>,
    /// Upper bound of the files of the deploy; `u64::MAX` without a limit.
    pub(super) max_stored_bytes: u64,
    /// Bytes of the deploy that the new one replaces.
    pub(super) served_bytes: i64,
}

impl SiteState {
    /// Returns the state for a preview, which replaces nothing.
    pub(super) fn for_preview(self) -> Self {
        let replaced = u64::try_from(self.served_bytes).unwrap_or_default();
        let max_stored_bytes = match self.max_stored_bytes {
            u64::MAX => u64::MAX,
            bytes => bytes.saturating_sub(replaced),
        };
        Self { max_stored_bytes, served_bytes: 0, ..self }
    }

    /// Reads the state of a subdomain. Publishing charges the plan; this bounds what is stored before.
    pub(super) async fn find<S>(
        tx: &mut Tx,
        call: &Call<S>,
        subdomain_id: uuid::Uuid,
    ) -> Result<Self, Problem> {
        let (account_id, limits) = (call.account_id, call.limits());
        let usage = store::usage::find_usage(tx, account_id).await?;
        let served = store::deploys::files::lock_served_deploy(tx, account_id, subdomain_id).await?;
        let pages = store::deploys::undo::list_pages(tx, account_id, subdomain_id).await?;
        let (projects, storage) = usage.map_or((0, 0), |usage| (usage.projects, usage.storage_bytes));
        let served_bytes = served.map_or(0, |served| served.size_bytes);
        let with_path = |page: &FoundPage| Some((page.path.clone()?, page.slug.clone()));
        Ok(Self {
            by_path: pages.iter().filter_map(with_path).collect(),
            slugs: pages.into_iter().map(|page| page.slug).collect(),
            projects_left: match limits.projects {
                UNLIMITED => None,
                limit => Some(u64::try_from(limit - projects).unwrap_or(0)),
            },
            max_stored_bytes: match limits.storage_bytes {
                UNLIMITED => u64::MAX,
                // Beyond a limit that was lowered, the files may still be replaced by smaller ones.
                limit => u64::try_from((limit - storage).max(0) + served_bytes).unwrap_or(0),
            },
            served_bytes,
        })
    }
}
