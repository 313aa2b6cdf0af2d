//! `images pin`, with a program in place of docker.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sandbox::test::TestFolder;

use crate::installation::{Ended, ended, program};

/// Knows one tag of a registry, one pulled image and one that was built here.
const DOCKER: &str = r#"#!/bin/sh
for image in "$@"; do :; done
case "$1 $image" in
    "buildx redis:8.2") echo "sha256:DIGEST" ;;
    "image postgres:18.1") echo "registry.example:5000/postgres@sha256:DIGEST" ;;
    "image built:1") echo ;;
    "buildx "*) echo "no registry" >&2; exit 1 ;;
    *) echo "No such image: $image" >&2; exit 1 ;;
esac
"#;

const ENV: &str = "# Images\nREDIS_IMAGE=redis:8.2\nexport=1\nPOSTGRES_IMAGE=\"postgres:18.1\"\nOWN_IMAGE=built:1\nVERSION=1\n";

fn files(env: &str) -> (TestFolder, PathBuf, PathBuf) {
    let folder = sandbox::test::folder();
    fs::create_dir_all(folder.path()).unwrap();
    let (docker, env_file) = (folder.path().join("docker"), folder.path().join(".env"));
    fs::write(&docker, DOCKER.replace("DIGEST", &"0a".repeat(32))).unwrap();
    fs::set_permissions(&docker, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&env_file, env).unwrap();
    fs::set_permissions(&env_file, fs::Permissions::from_mode(0o640)).unwrap();
    (folder, docker, env_file)
}

fn pin(docker: &Path, env_file: &Path, more: &[&str]) -> Ended {
    let files =
        ["images", "pin", "--docker", docker.to_str().unwrap(), "--env-file", env_file.to_str().unwrap()];
    ended(program(&[&files, more].concat()).env("PATH", "/usr/bin:/bin").output().unwrap())
}

#[test]
fn tags_get_digests_and_other_lines_stay_as_they_are() {
    let (_folder, docker, env_file) = files(ENV);
    let done = pin(&docker, &env_file, &[]);
    assert_eq!(done.code, 0, "{done:?}");
    let digest = format!("sha256:{}", "0a".repeat(32));
    let expected = ENV.replace("redis:8.2", &format!("redis:8.2@{digest}"));
    let expected = expected.replace("postgres:18.1", &format!("postgres:18.1@{digest}"));
    assert_eq!(fs::read_to_string(&env_file).unwrap(), expected);
    assert!(
        done.stdout.contains("built:1 was built on this machine") && done.stdout.contains("2 images pinned"),
        "{done:?}"
    );
    assert_eq!(fs::metadata(&env_file).unwrap().permissions().mode() & 0o777, 0o640);

    let again = pin(&docker, &env_file, &[]);
    assert!(
        again.stdout.contains("is pinned already") && again.stdout.contains("0 images pinned"),
        "{again:?}"
    );
    fs::write(&env_file, expected.replace("0a0a", "0b0b")).unwrap();
    assert!(pin(&docker, &env_file, &["--update"]).stdout.contains("2 images pinned"));
    assert_eq!(fs::read_to_string(&env_file).unwrap(), expected);
}

#[test]
fn an_unknown_image_is_named_and_the_others_are_pinned() {
    let (_folder, docker, env_file) = files("A_IMAGE=missing:1\nB_IMAGE=redis:8.2\n");
    let done = pin(&docker, &env_file, &[]);
    assert!(
        done.code == 1 && done.stderr.contains("A_IMAGE: missing:1: no registry; No such image"),
        "{done:?}"
    );
    let text = fs::read_to_string(&env_file).unwrap();
    assert!(text.starts_with("A_IMAGE=missing:1\nB_IMAGE=redis:8.2@sha256:"), "{text}");
}

#[test]
fn comments_stay_and_an_image_that_cannot_be_read_is_an_error() {
    let (_folder, docker, env_file) = files("A_IMAGE=redis:8.2 # the cache\nB_IMAGE=${OTHER}\n");
    let done = pin(&docker, &env_file, &[]);
    assert!(done.code == 1 && done.stderr.contains("B_IMAGE=${OTHER}: it has another variable"), "{done:?}");
    let text = fs::read_to_string(&env_file).unwrap();
    let digest = format!("sha256:{}", "0a".repeat(32));
    assert_eq!(text, format!("A_IMAGE=redis:8.2@{digest} # the cache\nB_IMAGE=${{OTHER}}\n"));
}

#[test]
fn a_missing_docker_and_a_missing_file_are_named() {
    let (folder, docker, env_file) = files(ENV);
    let done = pin(&folder.path().join("no-docker"), &env_file, &[]);
    assert!(done.code == 1 && done.stderr.contains("install Docker"), "{done:?}");
    assert_eq!(fs::read_to_string(&env_file).unwrap(), ENV);
    let done = pin(&docker, &folder.path().join("no-env"), &[]);
    assert!(done.code == 1 && done.stderr.contains("no-env"), "{done:?}");
}
