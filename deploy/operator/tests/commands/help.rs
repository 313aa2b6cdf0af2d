//! The help of each command teaches by examples.

use crate::installation::{Installation, ended, program};

const COMMANDS: [&[&str]; 31] = [
    &[],
    &["migrate"],
    &["check"],
    &["admin"],
    &["admin", "accounts"],
    &["admin", "account"],
    &["admin", "create-account"],
    &["admin", "plan"],
    &["admin", "suspend"],
    &["admin", "resume"],
    &["admin", "purge-status"],
    &["admin", "actions"],
    &["deliveries"],
    &["deliveries", "retry"],
    &["outbox"],
    &["outbox", "retry"],
    &["segments"],
    &["segments", "list"],
    &["segments", "ship"],
    &["keys"],
    &["keys", "status"],
    &["keys", "rotate"],
    &["keys", "rotate", "master"],
    &["keys", "pepper"],
    &["backup"],
    &["backup", "list"],
    &["backup", "check"],
    &["restore"],
    &["secrets"],
    &["secrets", "create"],
    &["images", "pin"],
];

#[test]
fn each_command_has_examples_of_itself() {
    for command in COMMANDS {
        let help = ended(program(&[command, &["--help"]].concat()).output().unwrap());
        assert_eq!(help.code, 0, "{command:?}");
        let example = format!("webruntime {}", command.join(" "));
        assert!(
            help.stdout.contains("Examples:") && help.stdout.contains(example.trim_end()),
            "{command:?}: {}",
            help.stdout
        );
        assert!(help.stdout.lines().all(|line| line.chars().count() <= 140), "{command:?} has long lines");
    }
}

#[test]
fn without_a_command_the_help_is_shown_and_the_defaults_are_a_manual() {
    let help = ended(program(&[]).output().unwrap());
    assert!(help.code != 0 && (help.stdout + &help.stderr).contains("Examples:"));
    let printed = ended(program(&["--print-config"]).output().unwrap());
    assert!(printed.code == 0 && printed.stdout.contains("[store]\n# Postgres"), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_service_and_the_environment_are_settings_too() {
    let installation = Installation::new().await;
    let folder = sandbox::test::folder();
    std::fs::create_dir_all(folder.path()).unwrap();
    let file = folder.path().join("control-plane.toml");
    let text = format!("[store]\nurl = '{}'\n[deploys]\nmax_open = 3\n", installation.database.url);
    std::fs::write(&file, text).unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let listed = ended(program(&[&["admin", "accounts"], &config[..]].concat()).output().unwrap());
    assert_eq!(listed.code, 0, "{listed:?}");

    let mut command = program(&["admin", "accounts"]);
    command.env("WEBRUNTIME_STORE__URL", &installation.database.url).env("WEBRUNTIME_DEPLOYS__MAX_OPEN", "3");
    assert_eq!(ended(command.output().unwrap()).code, 0);
    let misspelt = ended(program(&["check", "--set", "store.ur=x"]).output().unwrap());
    assert!(misspelt.code == 1 && misspelt.stderr.contains("did you mean `store.url`"), "{misspelt:?}");
}
