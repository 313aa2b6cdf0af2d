//! The operator's name in the log of changes.

use std::fs;

/// Returns `user@host`, by the user of this process and the machine's name.
pub(crate) fn user_at_host() -> String {
    let id = rustix::process::getuid().as_raw();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    });
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{}@{host}", user.unwrap_or_else(|| format!("uid-{id}")))
}
