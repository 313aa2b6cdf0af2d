//! `admin`: accounts, and the log of what operators changed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use chrono::Utc;
use domain::peppers::Peppers;

use crate::installation::{Installation, PEPPER};

/// Returns the value of a line `label  value`.
fn value<'a>(output: &'a str, label: &str) -> &'a str {
    let line = output.lines().find(|line| line.starts_with(label)).unwrap_or_else(|| panic!("{output}"));
    line[label.len()..].trim()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_account_has_a_key_that_works_and_is_shown_once() {
    let installation = Installation::new().await;
    let create = ["admin", "create-account", "--email", "Ana@example.com", "--plan", "pro", "--print-key"];
    let output = installation.ok(&create);
    let (id, key) = (value(&output, "account"), value(&output, "key"));
    let fingerprints = Peppers::parse(PEPPER).unwrap().fingerprints(key);
    let mut conn = store::acquire(&installation.database.db).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "the time of this test's account")]
    let now = Utc::now();
    let caller = store::credentials::find_by_key(&mut conn, &fingerprints, now).await.unwrap().unwrap();
    assert_eq!(caller.account.id.to_string(), id);
    assert_eq!(caller.account.plan.as_str(), "pro");
    assert!(caller.account.claimed_at.is_some(), "it is no trial, which would be deleted");
    assert_eq!(caller.account.email.as_deref(), Some("Ana@example.com"));
    assert_eq!(caller.account.subdomain.as_deref(), Some(value(&output, "subdomain")));

    for lookup in [id, value(&output, "subdomain"), key, "ana@EXAMPLE.com"] {
        let page = installation.ok(&["admin", "account", lookup]);
        assert!(page.contains(id) && page.contains("belongs to  Ana@example.com"), "{lookup}: {page}");
        assert!(!page.contains(key), "{page}");
    }
    assert!(installation.ok(&["admin", "accounts"]).contains(id));
    let actions = installation.ok(&["admin", "actions"]);
    assert!(actions.contains("admin create-account") && actions.contains(id), "{actions}");
    assert!(!actions.contains(key), "{actions}");

    for (email, plan, reason) in
        [("ana", "free", "not an e-mail address"), ("b@example.com", "gold", "plans are: free, pro, scale")]
    {
        let create = ["admin", "create-account", "--email", email, "--plan", plan, "--print-key"];
        let error = installation.error(&create);
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(installation.ok(&["admin", "accounts"]).lines().count(), 2, "nothing was created");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_goes_into_a_new_file_of_its_owner_and_into_no_log() {
    let installation = Installation::new().await;
    let folder = sandbox::test::folder();
    fs::create_dir_all(folder.path()).unwrap();
    let path = folder.path().join("ana.key");
    let create = ["admin", "create-account", "--email", "ana@example.com"];
    let error = installation.error(&create);
    assert!(error.contains("not a terminal") && error.contains("--key-file"), "{error}");
    let to_file = [&create[..], &["--key-file", path.to_str().unwrap()]].concat();
    let error = installation.error(&[&to_file[..], &["--plan", "gold"]].concat());
    assert!(error.contains("plans are") && !path.exists(), "no key, no file: {error}");

    let output = installation.ok(&to_file);
    let key = fs::read_to_string(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!output.contains(key.trim()) && output.contains(path.to_str().unwrap()), "{output}");
    assert!(installation.ok(&["admin", "account", key.trim()]).contains(value(&output, "account")));

    let error = installation.error(&to_file);
    assert!(error.contains("must not exist yet"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), key, "it is not overwritten");
    assert_eq!(installation.ok(&["admin", "accounts"]).lines().count(), 2, "one account was created");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_logged_with_their_operator_and_refused_ones_are_not() {
    let installation = Installation::new().await;
    let output = installation.ok(&["admin", "create-account", "--email", "ana@example.com", "--print-key"]);
    let id = value(&output, "account");
    installation.ok(&["admin", "plan", id, "scale", "--actor", "billing"]);
    let suspend = ["admin", "suspend", id, "--reason", "phishing", "--actor", "ben@desk"];
    let error = installation.error(&suspend);
    assert!(error.contains("deletes its previews") && error.contains("add --yes"), "{error}");
    assert!(!installation.ok(&["admin", "account", id]).contains("SUSPENDED"));
    installation.ok(&[&suspend[..], &["--yes"]].concat());
    assert!(installation.ok(&["admin", "account", id]).contains("SUSPENDED since"));
    installation.ok(&["admin", "resume", id]);
    assert!(!installation.ok(&["admin", "account", id]).contains("SUSPENDED"));

    let missing = "00000000-0000-0000-0000-000000000000";
    for refused in [
        &["admin", "plan", missing, "pro"][..],
        &["admin", "plan", id, "gold"],
        &["admin", "suspend", missing, "--yes"],
        &["admin", "resume", missing],
        &["admin", "account", "no-such-account"],
    ] {
        installation.error(refused);
    }
    let actions = installation.ok(&["admin", "actions", "--target", id]);
    let lines: Vec<&str> = actions.lines().collect();
    assert_eq!(lines.len(), 4, "{actions}");
    assert!(lines[0].contains("admin resume") && lines[0].contains('@'), "user@host: {actions}");
    assert!(lines[1].contains("ben@desk") && lines[1].contains(r#"{"reason":"phishing"}"#), "{actions}");
    assert!(lines[2].contains("billing") && lines[2].contains(r#""plan":"scale""#), "{actions}");
    assert!(!installation.ok(&["admin", "actions"]).contains(missing));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_still_to_be_deleted_is_counted() {
    let installation = Installation::new().await;
    let account = "00000000-0000-0000-0000-000000000007";
    installation
        .execute(&format!(
            "insert into event_purges (account_id, due_at, created_at, deleted_at)
             values ('{account}', now() - interval '90 minutes', now(), null), ('{account}', now() + interval '1 hour', now(), now());
             insert into blob_purges (account_id, due_at) values ('{account}', now());
             insert into accounts (id, claim_deadline, created_at)
             values ('00000000-0000-0000-0000-000000000008', now() - interval '5 minutes', now())"
        ))
        .await;
    let counts = |args: &[&str]| -> Vec<String> {
        let output = installation.ok(args);
        output
            .lines()
            .map(|line| {
                line.split("  ")
                    .filter(|word| !word.trim().is_empty())
                    .skip(1)
                    .map(str::trim)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect()
    };
    let all = counts(&["admin", "purge-status"]);
    assert!(all[0].starts_with("1 1 due, the oldest for 5"), "{all:?}");
    assert!(all[1].starts_with("1 1 due, the oldest for 90"), "{all:?}");
    assert!(
        all[2].starts_with("1 0 due") && all[3].starts_with("1 1 due") && all[4].starts_with("0 0 due"),
        "{all:?}"
    );
    let own = counts(&["admin", "purge-status", "--account", account]);
    assert!(own[0].starts_with("0 0 due") && own[1] == all[1], "{own:?}");
}
