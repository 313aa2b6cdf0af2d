//! The user that runs Postgres if this process is root, because Postgres refuses to run as root. Uses an existing user.

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

/// `nobody`, unless /etc/passwd has other ids.
const NOBODY: Account = Account { uid: 65534, gid: 65534 };

impl Account {
    /// Returns the user that must run Postgres, or `None` if this process's user can.
    pub(crate) fn for_postgres() -> Option<Self> {
        if !geteuid().is_root() {
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        Some(find(&users, "postgres").or_else(|| find(&users, "nobody")).unwrap_or(NOBODY))
    }

    /// Returns whether this user can reach `path`, which need not exist. Ignores access control lists.
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

    /// Makes this user the owner of a file, or of a directory and its content.
    pub(crate) fn own(&self, path: &Path) -> Result<()> {
        chown(path, Some(self.uid), Some(self.gid)).with_context(|| format!("chown {}", path.display()))?;
        if fs::symlink_metadata(path)?.is_dir() {
            fs::read_dir(path)?.try_for_each(|entry| self.own(&entry?.path()))?;
        }
        Ok(())
    }

    /// Returns the words before a command that run it as this user, for programs that start it themselves.
    pub(crate) fn command_prefix(self) -> Vec<String> {
        let (user, group) = (format!("--reuid={}", self.uid), format!("--regid={}", self.gid));
        vec!["setpriv".to_owned(), user, group, "--clear-groups".to_owned()]
    }

    /// Makes a command run as this user, without this process's groups.
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
    fn reads_users_from_the_password_file() {
        let users = "root:x:0:0::/root:/bin/sh\npostgres:x:101:104:Admin,,,:/var/lib/postgresql:/bin/bash\n";
        assert_eq!(find(users, "postgres"), Some(Account { uid: 101, gid: 104 }));
        assert_eq!(find(users, "post"), None);
    }

    #[test]
    fn a_path_below_a_private_directory_is_out_of_reach() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let other_user = Account { uid: 4_000_000, gid: 4_000_000 };
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!other_user.reaches(&inner));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert!(other_user.reaches(&inner.join("not yet there")));
    }
}
