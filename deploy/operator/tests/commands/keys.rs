//! `keys`: which keys stored values need, and rotations.

use domain::encryption::MasterKey;
use store::resealing::SealedColumn;

use crate::installation::{Installation, MASTER_KEY, PEPPER};

const NEW_KEY: &str = "5e4d3c2b1a09f8e7d6c5b4a3928170615e4d3c2b1a09f8e7d6c5b4a392817061";

const NEW_PEPPER: &str = "0b1c2d3e4f5061728394a5b6c7d8e9f0";

/// Inserts a webhook with an address and a secret that `keys` sealed.
async fn insert_webhook(installation: &Installation, account: &str, keys: &str) {
    let keys = MasterKey::parse(keys).unwrap();
    let sealed = |column: SealedColumn, nonce: u8| {
        let hex: String =
            keys.seal(column.purpose(), [nonce; 24], b"x").iter().map(|byte| format!("{byte:02x}")).collect();
        format!("'\\x{hex}'")
    };
    installation
        .execute(&format!(
            "insert into webhooks (id, account_id, sealed_url, events, all_forms, sealed_secret, created_at, updated_at)
             values (gen_random_uuid(), '{account}', {}, '{{}}', true, {}, now(), now())",
            sealed(SealedColumn::WebhookUrl, 1),
            sealed(SealedColumn::WebhookSecret, 2)
        ))
        .await;
}

fn account(installation: &Installation) -> String {
    let output = installation.ok(&["admin", "create-account", "--email", "ana@example.com", "--print-key"]);
    output.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_of_the_master_key_seals_everything_anew() {
    let mut installation = Installation::new().await;
    let account = account(&installation);
    insert_webhook(&installation, &account, MASTER_KEY).await;
    installation.set.push(format!("secrets.master_key=2027:{NEW_KEY},0:{MASTER_KEY}"));

    let status = installation.ok(&["keys", "status"]);
    assert!(
        status.contains("`2027` seals; also open: `0`") && status.contains("`0` has sealed 2 values"),
        "{status}"
    );
    assert!(installation.ok(&["check"]).contains("2 values are sealed by other keys than `2027`"));
    let dry = installation.ok(&["keys", "rotate", "master", "--dry-run"]);
    assert!(dry.contains("`0` has sealed 2 values"), "{dry}");
    let done = installation.ok(&["keys", "rotate", "master"]);
    assert!(
        done.contains("`2027` has sealed 2 values") && done.contains("`0` is unused: remove it"),
        "{done}"
    );
    assert!(!done.contains(NEW_KEY) && !done.contains(MASTER_KEY), "{done}");
    assert!(installation.ok(&["keys", "rotate"]).contains("`0` is unused"), "it may run again");
    let actions = installation.ok(&["admin", "actions"]);
    assert!(actions.contains("keys rotate master") && actions.contains(r#""resealed":2"#), "{actions}");

    installation.set.push(format!("secrets.master_key=2028:{MASTER_KEY}"));
    let missing = installation.run(&["keys", "rotate", "master"]);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert!(missing.stdout.contains("`2027`, which is NOT CONFIGURED, has sealed 2 values"), "{missing:?}");
    let checked = installation.run(&["check"]);
    assert!(checked.code == 1 && checked.stdout.contains("sealed with master key `2027`"), "{checked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_on_an_old_pepper_are_listed_until_they_moved() {
    let mut installation = Installation::new().await;
    let account = account(&installation);
    assert!(installation.ok(&["keys", "pepper"]).contains("All keys are stored under the configured pepper"));
    installation.set.push(format!("secrets.key_pepper={NEW_PEPPER},{PEPPER}"));
    let output = installation.ok(&["keys", "pepper"]);
    assert!(output.contains(&account) && output.contains("first key  never used"), "{output}");
    assert!(output.contains("1 keys may still need an old pepper") && !output.contains(PEPPER), "{output}");

    let ids = domain::peppers::Peppers::parse(NEW_PEPPER).unwrap();
    installation.execute(&format!("update api_keys set pepper_id = '{}'", ids.first_id())).await;
    let output = installation.ok(&["keys", "rotate", "pepper"]);
    assert!(output.contains("No key needs an old pepper") && !output.contains(&account), "{output}");
    installation.set.push("secrets.key_pepper=another-pepper-of-ours".to_owned());
    let output = installation.ok(&["keys", "status"]);
    assert!(output.contains("which is NOT CONFIGURED: 1 keys, which are invalid without it"), "{output}");
}
