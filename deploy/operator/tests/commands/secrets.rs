//! `secrets create`: once, for its owner alone.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::installation::{ended, program};

#[test]
fn secrets_are_made_once_and_never_overwritten() {
    let folder = sandbox::test::folder();
    let dir = folder.path().join("secrets");
    let args = ["secrets", "create", dir.to_str().unwrap()];
    let first = ended(program(&args).output().unwrap());
    assert_eq!(first.code, 0, "{first:?}");
    assert!(first.stdout.contains("7 files created"), "{first:?}");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    let read = || {
        let mut files: Vec<(String, String)> = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                assert_eq!(mode(&path), 0o400, "{path:?}");
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, fs::read_to_string(&path).unwrap())
            })
            .collect();
        files.sort();
        files
    };
    let made = read();
    assert_eq!(made.len(), 7, "no partial file is left: {made:?}");
    for (name, text) in &made {
        assert!(text.len() == 65 && text.ends_with('\n'), "{name}");
        assert!(!first.stdout.contains(text.trim()), "secrets are not printed");
    }
    assert!(
        domain::encryption::MasterKey::parse(
            made.iter().find(|(name, _)| name == "master_key").unwrap().1.trim()
        )
        .is_ok()
    );

    fs::remove_file(dir.join("edge_token")).unwrap();
    let second = ended(program(&args).output().unwrap());
    assert!(
        second.stdout.contains("1 files created") && second.stdout.contains("exists, unchanged"),
        "{second:?}"
    );
    let unchanged = |files: Vec<(String, String)>| {
        files.into_iter().filter(|(name, _)| name != "edge_token").collect::<Vec<_>>()
    };
    assert_eq!(unchanged(read()), unchanged(made));

    let refused = ended(program(&[&args[..], &["--mode", "0755"]].concat()).output().unwrap());
    assert!(refused.code == 2 && refused.stderr.contains("0400 or 0444"), "{refused:?}");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let refused = ended(program(&["secrets", "create", "/dev/null/secrets"]).output().unwrap());
    assert!(refused.code == 1 && refused.stderr.contains("creating /dev/null/secrets"), "{refused:?}");
}
