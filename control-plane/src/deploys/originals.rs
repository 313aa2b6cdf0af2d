//! Retains the bytes of announced files that a deploy serves in another form, so that the next deploy that announces them finds
//! them stored. The originals of the deploy that it replaces are released.

use std::collections::{BTreeMap, BTreeSet};

use store::Tx;
use store::deploys::files::DeployFile;
use store::deploys::sources::{self, NewSource};
use uuid::Uuid;
use web::Problem;

use super::build::BuiltSite;
use super::stored_files::BuiltFile;

/// Replaces the announced files of `replaced` deploys by the originals of a deploy. Returns the blobs that neither its
/// `files` nor its originals refer to, which the caller must release. `ids` are the blobs of the built files.
pub(super) async fn replace_sources(
    tx: &mut Tx,
    account_id: Uuid,
    deploy_id: Uuid,
    replaced: &[Uuid],
    site: &BuiltSite,
    files: &[DeployFile],
    ids: &BTreeMap<[u8; 32], Uuid>,
) -> Result<Vec<Uuid>, Problem> {
    let mut unneeded = sources::delete_sources(tx, account_id, replaced).await?;
    let original = |file: &BuiltFile| NewSource {
        path: file.path.clone(),
        sha256: file.blob.sha256,
        size_bytes: file.blob.size_bytes,
        blob_id: ids.get(&file.blob.sha256).copied(),
    };
    let originals: Vec<NewSource> = site.originals.iter().map(original).collect();
    if !originals.is_empty() {
        sources::insert_sources(tx, account_id, deploy_id, &originals).await?;
    }
    let needed: BTreeSet<Uuid> = files
        .iter()
        .map(|file| file.blob_id)
        .chain(originals.iter().filter_map(|original| original.blob_id))
        .collect();
    unneeded.retain(|id| !needed.contains(id));
    Ok(unneeded)
}
