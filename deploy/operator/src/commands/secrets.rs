//! `webruntime secrets`.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use service::Rng;

/// Shown under `secrets --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  webruntime secrets create secrets    one file for each secret in the folder `secrets`; existing files stay as they are

Each file holds one random value of 64 hexadecimal digits. Only its owner can read it. Settings named <setting>_file read them:
secrets.master_key_file, store.password_file and so on.

Keep master_key and key_pepper apart from all backups of the stores: without them a restored installation can't open its stored
secrets, and every API key is invalid. Never make them anew; `webruntime keys --help` has the steps of a rotation.";

/// The secrets that an installation needs, with the settings that read them.
const FILES: [(&str, &str); 7] = [
    (
        "master_key",
        "secrets.master_key_file of control plane, job-runner, edge and webruntime; salts.master_key_file of the collector",
    ),
    ("key_pepper", "secrets.key_pepper_file of the control plane and webruntime"),
    ("edge_token", "secrets.edge_token_file of edge, control plane and collector"),
    ("postgres_password", "store.password_file of all services and webruntime"),
    ("redis_password", "redis.password_file of all services and webruntime"),
    ("clickhouse_password", "warehouse.password_file of control plane, collector, job-runner and webruntime"),
    ("s3_secret", "blobs.secret_file of edge, control plane, job-runner and webruntime"),
];

/// Options of `secrets`.
#[derive(Debug, Args)]
pub(crate) struct Secrets {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make the folder and the missing files; never overwrites one
    #[command(after_help = EXAMPLES)]
    Create {
        /// The folder
        dir: PathBuf,
        /// The mode of new files: 0444 lets other users read a mounted file; the folder keeps them out here
        #[arg(long, default_value = "0400", value_parser = mode)]
        mode: u32,
    },
}

fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).map_err(|_| "not a mode such as 0400".to_owned())?;
    if mode & !0o666 != 0 || mode & 0o400 == 0 {
        return Err(
            "the owner must be able to read a secret, and it is not executable: 0400 or 0444".to_owned()
        );
    }
    Ok(mode)
}

/// Executes the command.
pub(crate) fn run(args: &Secrets) -> Result<ExitCode> {
    let Command::Create { dir, mode } = &args.command;
    let created = create(dir, *mode, &Rng::system())?;
    for (name, setting) in FILES {
        let state = if created.contains(&name) { "created" } else { "exists, unchanged" };
        println!("{name:<20} {state:<18} {setting}");
    }
    println!("\n{}: {} files created.", dir.display(), created.len());
    Ok(ExitCode::SUCCESS)
}

/// Returns the names of the files that were missing.
fn create(dir: &Path, mode: u32, rng: &Rng) -> Result<Vec<&'static str>> {
    let made = DirBuilder::new().mode(0o700).recursive(true).create(dir);
    made.with_context(|| format!("creating {}", dir.display()))?;
    let mut created = Vec::new();
    for (name, _) in FILES {
        let path = dir.join(name);
        // A file appears under its name only with its whole content, so an interrupted run leaves no empty secret.
        let partial = dir.join(format!(".{name}.partial"));
        let write = || -> std::io::Result<bool> {
            if path.try_exists()? {
                return Ok(false);
            }
            remove_if_present(&partial)?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&partial)?;
            writeln!(file, "{}", hex::encode(rng.bytes::<32>()))?;
            file.sync_all()?;
            // Unlike a rename, a link never replaces the file of a run at the same time.
            let linked = fs::hard_link(&partial, &path);
            fs::remove_file(&partial)?;
            match linked {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                linked => linked.map(|()| true),
            }
        };
        if write().with_context(|| format!("creating {}", path.display()))? {
            created.push(name);
        }
    }
    Ok(created)
}

fn remove_if_present(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
