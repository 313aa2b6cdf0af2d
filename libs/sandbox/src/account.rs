//! The user Postgres runs as when we are root, for it refuses to be root. An existing one: none is made.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use rustix::process::geteuid;

/// A user of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
}

/// `nobody`, where /etc/passwd doesn't say otherwise.
const NOBODY: Account = Account { uid: 65534, gid: 65534 };

impl Account {
    /// Whom Postgres must run as; `None` if that is simply us.
    pub(crate) fn for_postgres() -> Option<Self> {
        if !geteuid().is_root() {
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        Some(find(&users, "postgres").or_else(|| find(&users, "nobody")).unwrap_or(NOBODY))
    }

    /// Whether this user can walk to `path`, which need not exist. Access lists are not looked at.
    pub(crate) fn reaches(&self, path: &Path) -> bool {
        path.ancestors().filter_map(|dir| fs::metadata(dir).ok()).all(|dir| {
            let shift = match (dir.uid() == self.uid, dir.gid() == self.gid) {
                (true, _) => 6,
                (false, true) => 3,
                (false, false) => 0,
            };
            dir.mode() >> shift & 1 == 1
        })
    }

    /// Makes the user the owner of a file or folder and all in it.
    pub(crate) fn own(&self, path: &Path) -> Result<()> {
        chown(path, Some(self.uid), Some(self.gid)).with_context(|| format!("chown {}", path.display()))?;
        if fs::symlink_metadata(path)?.is_dir() {
            fs::read_dir(path)?.try_for_each(|entry| self.own(&entry?.path()))?;
        }
        Ok(())
    }

    /// Has a command run as this user, with no group of ours.
    pub(crate) fn run(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid).current_dir("/");
    }
}

fn find(users: &str, name: &str) -> Option<Account> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then_some(())?;
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Account { uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read_from_the_password_file() {
        let users = "root:x:0:0::/root:/bin/sh\npostgres:x:101:104:Admin,,,:/var/lib/postgresql:/bin/bash\n";
        assert_eq!(find(users, "postgres"), Some(Account { uid: 101, gid: 104 }));
        assert_eq!(find(users, "post"), None);
    }

    #[test]
    fn a_private_folder_on_the_way_is_not_reached() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let stranger = Account { uid: 4_000_000, gid: 4_000_000 };
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!stranger.reaches(&inner));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert!(stranger.reaches(&inner.join("not yet there")));
    }
}
