//! Backups and restores over real stores.

use std::fs;
use std::path::Path;
use std::process::Command;

use sandbox::programs::{PgBackRest, pgbackrest};
use serde_json::Value;
use uuid::Uuid;

use crate::backed_up::BackedUp;
use crate::installation::MASTER_KEY;

const OTHER_KEY: &str = "f9e8d7c6b5a493827160f5e4d3c2b1a0f9e8d7c6b5a493827160f5e4d3c2b1a0";
const SALT: &str = "c0ffee42c0ffee43c0ffee44c0ffee45c0ffee46c0ffee47c0ffee48c0ffee49";
/// Set where pgBackRest can be had, so that the test can't pass without it.
const REQUIRED: &str = "TESTS_REQUIRE_PGBACKREST";

/// Returns pgBackRest, or `None` if it can't be had here.
fn pgbackrest_or_skip() -> Option<PgBackRest> {
    match pgbackrest() {
        Ok(program) => Some(program),
        Err(reason) => {
            assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set, but {reason:#}");
            eprintln!("NOT TESTED: backups and restores. {reason:#}");
            None
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_comes_back_and_what_was_deleted_does_not() {
    let Some(program) = pgbackrest_or_skip() else { return };
    let mut installation = BackedUp::new(&program).await;
    installation.add_account(1).await;
    installation.add_account(2).await;
    let site = Uuid::from_u128(101);
    installation
        .execute(&format!(
            "insert into salts (day, salt) values ('2026-01-01', decode('{SALT}', 'hex'));
             insert into retention_salts values ('{site}', '2026-01-01', now() + '1 day', decode('{SALT}', 'hex'));
             update accounts set name = 'found in the backup'"
        ))
        .await;
    installation.ok(&["backup"]);
    installation.add_account(3).await;
    installation.delete_site(2).await;
    let before_deletion = installation.archive().await;
    let listed = installation.ok(&["backup"]);
    assert!(listed.contains("incremental"), "{listed}");
    installation.add_account(4).await;
    // Later than the last backup: Postgres alone knows it.
    installation.delete_account(1).await;
    installation.archive().await;

    let checked = installation.ok(&["backup", "check"]);
    assert!(checked.contains("files have their checksums") && !checked.contains("failed"), "{checked}");
    assert_eq!(installation.ok(&["backup", "list"]).lines().count(), 3);
    let metrics =
        fs::read_to_string(installation.folder.path().join("metrics/webruntime_backup.prom")).unwrap();
    for part in ["postgres", "clickhouse", "blobs"] {
        let name = format!("webruntime_backup_last_success_timestamp_seconds{{part=\"{part}\"}}");
        assert!(metrics.contains(&name), "{metrics}");
    }
    let salt = hex::decode(SALT).unwrap();
    assert_eq!(files_with(&installation.folder.path(), &salt), "", "no backup and no log has a salt");
    let found = files_with(&installation.folder.path(), b"found in the backup");
    assert!(found.contains("/archive/") && found.contains("/backup/"), "the search works: {found}");

    // A service that still runs is a connection to Postgres. (This test's own, here.)
    let error = installation.error(&["restore", "--replace"]);
    assert!(error.contains("stop the services before a restore"), "{error}");

    installation.wipe().await;
    let wrong = installation.run_with(OTHER_KEY, &["restore", "--step", "files"]);
    assert!(wrong.code == 1 && wrong.stderr.contains("not the one of the backup"), "{wrong:?}");
    installation.ok(&["restore", "--step", "files"]);
    installation.postgres.restart().await;
    let restored = installation.ok(&["restore", "--step", "stores"]);
    // The blob of account 4 is later than the last backup, and the object store was wiped.
    assert!(restored.contains("3 blobs, 2 of them copied, 1 missing"), "{restored}");
    assert_eq!(installation.accounts().await, [2, 3, 4], "those of after the backup are in the archived log");
    assert_eq!(installation.events().await, [(3, 2)], "of deleted accounts and sites nothing comes back");
    assert_eq!(installation.blob_files(), ["2", "3"], "{restored}");

    // To a point in time before the deletion: the list of deletions knows it.
    installation.disconnect().await;
    installation.ok(&["restore", "--step", "deletions"]);
    let at = before_deletion.to_rfc3339();
    let running = installation.error(&["restore", "--replace", "--at", &at]);
    assert!(running.contains("Postgres is running"), "{running}");
    installation.postgres.stop().await;
    let occupied = installation.error(&["restore", "--step", "files", "--skip", "clickhouse", "--at", &at]);
    assert!(occupied.contains("is not empty"), "{occupied}");
    installation.ok(&["restore", "--replace", "--step", "files", "--at", &at]);
    installation.postgres.restart().await;
    let restored = installation.ok(&["restore", "--replace", "--step", "stores", "--at", &at]);
    assert!(restored.contains("deleted again: 1 accounts"), "{restored}");
    assert_eq!(installation.accounts().await, [2, 3]);
    assert_eq!(installation.events().await, [(3, 2)]);
    let actions = installation.ok(&["admin", "actions"]);
    assert!(actions.contains("restore") && actions.contains("\"state\":\"ended\""), "{actions}");
}

/// Returns the files below a folder that contain these bytes, raw, as hexadecimal digits or in base64. pgBackRest compresses
/// nothing here, so they would be found.
fn files_with(folder: &Path, bytes: &[u8]) -> String {
    use base64::Engine as _;
    let raw: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    let base64 = base64::engine::general_purpose::STANDARD_NO_PAD.encode(bytes);
    let pattern = format!("{raw}|(?i:{})|\\Q{base64}\\E", hex::encode(bytes));
    let mut grep = Command::new("grep");
    grep.env("LC_ALL", "C").args(["-r", "-l", "-a", "-P", &pattern]).arg(folder);
    String::from_utf8(grep.output().unwrap().stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_in_the_backup_folder_are_refused() {
    let Some(program) = pgbackrest_or_skip() else { return };
    let mut installation = BackedUp::new(&program).await;
    let copy = installation.backups().join("notes.txt");
    fs::write(&copy, format!("the key is {MASTER_KEY}\n")).unwrap();
    let error = installation.error(&["backup"]);
    assert!(error.contains("notes.txt holds a secret") && !error.contains(MASTER_KEY), "{error}");
    fs::remove_file(&copy).unwrap();
    let secrets = installation.backups().join("secrets");
    fs::create_dir(&secrets).unwrap();
    fs::write(secrets.join("edge_token"), "0123456789abcdefghij\n").unwrap();
    installation.set.push(format!("secrets.edge_token_file={}/edge_token", secrets.display()));
    let error = installation.error(&["backup", "--skip", "postgres"]);
    assert!(error.contains("inside the backup folder"), "{error}");
    assert_eq!(installation.ok(&["backup", "list"]).lines().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_backups_expire_with_the_blobs_that_no_other_has_and_damage_is_found() {
    let Some(program) = pgbackrest_or_skip() else { return };
    let mut installation = BackedUp::new(&program).await;
    installation.set.push("backup.retained_fulls=1".to_owned());
    installation.add_account(1).await;
    installation.ok(&["backup"]);
    let pool = || fs::read_dir(installation.backups().join("blobs")).unwrap().count();
    assert_eq!(pool(), 1);
    installation.execute("delete from blobs").await;
    installation.add_account(2).await;
    installation.ok(&["backup", "--full"]);
    assert_eq!(installation.ok(&["backup", "list"]).lines().count(), 2);
    let left: Vec<_> = installation.blob_pool();
    assert_eq!(left, [Uuid::from_u128(2).to_string()]);
    assert_eq!(fs::read_dir(installation.backups().join("clickhouse")).unwrap().count(), 1);

    let blob =
        fs::read_dir(installation.backups().join("blobs").join(&left[0])).unwrap().next().unwrap().unwrap();
    fs::write(blob.path(), "other bytes").unwrap();
    let checked = installation.run_with(MASTER_KEY, &["backup", "check", "--json"]);
    let findings: Vec<Value> = serde_json::from_str(&checked.stdout).unwrap();
    let failed: Vec<&Value> = findings.iter().filter(|finding| finding["status"] == "failed").collect();
    assert!(checked.code == 1 && failed.len() == 1, "{checked:?}");
    assert_eq!(failed[0]["check"], "backup.blobs");
}
