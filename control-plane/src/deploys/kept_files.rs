//! Keeps files of a replaced deploy reachable for a while, for tabs that show the old site.

use domain::deploys::kept_files::{Capacity, OldFiles, select};
use domain::plans::UNLIMITED;
use domain::static_sites::deploy_notes::Note;
use domain::static_sites::limits::max_files;
use store::deploys::kept_files::{self, Filter};
use store::{Tx, blobs, usage};
use uuid::Uuid;
use web::Problem;

use crate::App;
use crate::call::Call;

/// A change of the deploy that a site serves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replacement {
    /// The deploy that was served.
    pub(super) from: Uuid,
    /// The deploy that is served now, with all its files; `None` for none.
    pub(super) to: Option<Uuid>,
    /// What becomes of the old files.
    pub(super) old_files: OldFiles,
}

/// Moves the files that stay reachable to the deploy that is served now, as far as the plan has room, and ends all others.
/// `is_served` says which paths that deploy has itself. The caller holds the usage lock and has charged that deploy in place
/// of the old one. Returns a note if not all files fit.
pub(super) async fn replace<S>(
    app: &App,
    call: &Call<S>,
    tx: &mut Tx,
    replacement: Replacement,
    is_served: impl Fn(&str) -> bool,
) -> Result<Option<Note>, Problem> {
    let (account_id, now) = (call.account_id, app.clock.now());
    let Replacement { from, to, old_files } = replacement;
    let mut note = None;
    if let (Some(to), OldFiles::Keep) = (to, old_files) {
        let replaced = kept_files::list_replaced(tx, account_id, from).await?;
        let kept = select(&replaced, is_served, capacity(call, tx).await?, now);
        let limit = call.limits().storage_bytes;
        if !kept.files.is_empty() && usage::reserve_bytes(tx, account_id, kept.bytes, limit).await? {
            kept_files::insert_kept(tx, account_id, (from, to), &kept.files).await?;
        }
        note = kept.note;
    }
    let of_old = Filter { deploy_id: Some(from), ..Filter::default() };
    let ended = kept_files::delete_kept(tx, account_id, of_old).await?;
    blobs::release_blobs(tx, account_id, &ended.blobs, now).await?;
    Ok(note)
}

/// Returns what the plan has left. As many files are kept as a deploy may have.
async fn capacity<S>(call: &Call<S>, tx: &mut Tx) -> Result<Capacity, Problem> {
    let used = usage::find_usage(tx, call.account_id).await?.map_or(0, |usage| usage.storage_bytes);
    let bytes = match call.limits().storage_bytes {
        UNLIMITED => u64::MAX,
        limit => u64::try_from(limit - used).unwrap_or(0),
    };
    Ok(Capacity { files: max_files(call.plan()), bytes })
}
