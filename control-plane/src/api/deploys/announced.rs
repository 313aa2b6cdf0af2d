//! The files that a caller announces with a deploy, and which of them it must upload.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use domain::deploys::manifest::{AnnouncedFile, FileInput, Manifest, ManifestLimits, needs_bytes};
use domain::scopes::Resource;
use domain::static_sites::limits::max_files;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use store::Tx;
use store::deploys::sources::{KnownBlob, NewSource, lock_known};
use uuid::Uuid;
use web::Problem;

use crate::call::Call;

/// An announced file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "AnnouncedFile")]
struct AnnouncedFileInput {
    /// SHA-256 of its bytes, as 64 hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-fA-F]{64}$"))]
    sha256: String,
    /// Exact number of its bytes.
    #[serde(deserialize_with = "web::whole_number")]
    #[schemars(with = "i64", range(min = 0))]
    size_bytes: i64,
}

/// A JSON object of announced files by path. Unlike a map, it keeps a path that is given twice, which is an error.
#[derive(Debug)]
pub(super) struct AnnouncedFiles(Vec<FileInput>);

impl<'de> Deserialize<'de> for AnnouncedFiles {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Files;
        impl<'de> Visitor<'de> for Files {
            type Value = AnnouncedFiles;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of files by path")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AnnouncedFiles, A::Error> {
                let mut files = Vec::new();
                while let Some((path, file)) = map.next_entry::<String, AnnouncedFileInput>()? {
                    let AnnouncedFileInput { sha256, size_bytes } = file;
                    files.push(FileInput { path, sha256, size_bytes });
                }
                Ok(AnnouncedFiles(files))
            }
        }
        reader.deserialize_map(Files)
    }
}

impl JsonSchema for AnnouncedFiles {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AnnouncedFiles".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, AnnouncedFileInput>::json_schema(generator)
    }
}

impl AnnouncedFiles {
    /// Checks the files by the rules for entries of a zip and the limits of the plan.
    pub(super) fn read<S>(self, call: &Call<S>) -> Result<Manifest, Problem> {
        let limits =
            ManifestLimits { max_files: max_files(call.plan()), max_file_bytes: max_file_bytes(call) };
        Manifest::parse(self.0, limits).map_err(Problem::validation)
    }
}

/// The announced files of a deploy, compared with what the account has stored.
pub(super) struct ComparedFiles {
    /// Every announced file, with its stored bytes if there are any.
    pub(super) sources: Vec<NewSource>,
    /// The paths of the files to upload, sorted.
    pub(super) missing: Vec<String>,
}

/// Compares announced files with those of the account's own deploys. Their bytes stay at least until the transaction ends.
pub(super) async fn compare<S>(
    call: &Call<S>,
    tx: &mut Tx,
    manifest: &Manifest,
) -> Result<ComparedFiles, Problem> {
    let max_file_bytes = max_file_bytes(call);
    let is_needed =
        |path: &str, file: &AnnouncedFile| needs_bytes(path, file.size_bytes.unsigned_abs(), max_file_bytes);
    let needed = manifest.files().iter().filter(|(path, file)| is_needed(path, file));
    let digests: Vec<[u8; 32]> = needed.map(|(_, file)| file.sha256).collect();
    let sites = known_sites(call);
    let known = lock_known(tx, call.account_id, &digests, sites.as_deref()).await?;
    let known: BTreeMap<[u8; 32], KnownBlob> = known.into_iter().map(|blob| (blob.sha256, blob)).collect();
    let (mut sources, mut missing) = (Vec::new(), Vec::new());
    for (path, file) in manifest.files() {
        let blob = known.get(&file.sha256).filter(|blob| blob.size_bytes == file.size_bytes);
        let blob_id = blob.filter(|_| is_needed(path, file)).map(|blob| blob.id);
        if blob_id.is_none() && is_needed(path, file) {
            missing.push(file.announced_path.clone());
        }
        let (path, sha256, size_bytes) = (path.clone(), file.sha256, file.size_bytes);
        sources.push(NewSource { path, sha256, size_bytes, blob_id });
    }
    missing.sort_unstable();
    Ok(ComparedFiles { sources, missing })
}

fn max_file_bytes<S>(call: &Call<S>) -> u64 {
    u64::try_from(call.limits().asset_size_limit).unwrap_or(u64::MAX)
}

/// Returns the sites whose files the caller may learn of; `None` for all. A key restricted to pages may not see the other
/// pages of any site.
fn known_sites<S>(call: &Call<S>) -> Option<Vec<Uuid>> {
    let restrictions = call.restrictions();
    match restrictions.ids_of(Resource::Pages) {
        Some(_) => Some(Vec::new()),
        None => restrictions.ids_of(Resource::Subdomains).map(|ids| ids.iter().copied().collect()),
    }
}
