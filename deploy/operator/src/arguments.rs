//! The command line arguments.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    admin, backup, check, deliveries, images, keys, migrate, outbox, restore, secrets, segments,
};

const EXAMPLES: &str = "Examples:
  webruntime secrets create secrets              make the installation's secrets, once
  webruntime migrate --wait 60s                  bring both databases to the schema of this release
  webruntime check                               is everything reachable, recent and configured well?
  webruntime admin create-account --email …      the first account, with an API key
  webruntime backup                              Postgres, ClickHouse and blobs, incrementally
  webruntime admin --help                        … and each command has examples

Each command has a --help with examples. Changes of an installation are logged with the operator's name: webruntime admin actions.

Settings are those of the services: from --set, else from WEBRUNTIME_<SECTION>__<KEY> in the environment, else from --config,
else the defaults that --print-config prints. Sections that this program does not read are ignored.";

/// The operator's program of an installation: migrations, checks, accounts, keys, backups and stuck work
#[derive(Debug, Parser)]
#[command(name = "webruntime", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) global: Global,
    /// Print the commented defaults, which are the manual of the settings, and exit
    #[arg(long)]
    pub(crate) print_config: bool,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// A TOML file with the settings that differ from the defaults
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// One setting, as section.key=value; repeatable
    #[arg(long, value_name = "KEY=VALUE", global = true)]
    pub(crate) set: Vec<String>,
    /// The operator's name in the log of changes; by default user@host
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) actor: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Apply the pending migrations of Postgres and ClickHouse
    #[command(after_help = migrate::EXAMPLES)]
    Migrate(migrate::Migrate),
    /// Check stores, versions, schema, keys and settings
    #[command(after_help = check::EXAMPLES)]
    Check(check::Check),
    /// Accounts: create, look up, plans, suspension; and the log of what operators changed
    #[command(after_help = admin::EXAMPLES)]
    Admin(admin::Admin),
    /// Webhook deliveries: send failed ones again
    #[command(after_help = deliveries::EXAMPLES)]
    Deliveries(deliveries::Deliveries),
    /// The outbox: what waits to be relayed, and what can't be read
    #[command(after_help = outbox::EXAMPLES)]
    Outbox(outbox::Outbox),
    /// A collector's folder of events: list it, or send it to ClickHouse
    #[command(after_help = segments::EXAMPLES)]
    Segments(segments::Segments),
    /// Master keys and peppers: their use, and their rotation
    #[command(after_help = keys::EXAMPLES)]
    Keys(keys::Keys),
    /// Back up Postgres, ClickHouse and the blobs; list, verify
    #[command(after_help = backup::EXAMPLES)]
    Backup(backup::Backup),
    /// Restore a backup, or a point in time
    #[command(after_help = restore::EXAMPLES)]
    Restore(restore::Restore),
    /// Make the secrets of an installation
    #[command(after_help = secrets::EXAMPLES)]
    Secrets(secrets::Secrets),
    /// Container images: write the digests of their tags
    #[command(after_help = images::EXAMPLES)]
    Images(images::Images),
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser as _;

    use super::Cli;

    const RUNBOOKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../observability/runbooks");

    /// The commands of this program that a page names, without its name.
    fn commands(page: &str) -> impl Iterator<Item = &str> {
        let end = |rest: &str| rest.find(['`', '\n']).unwrap_or(rest.len());
        page.split("./webruntime ").skip(1).map(move |rest| &rest[..end(rest)])
    }

    #[test]
    fn accepts_the_commands_of_the_runbooks() {
        let pages = fs::read_dir(RUNBOOKS).expect("the runbooks").map(|page| page.expect("a page").path());
        let mut count = 0;
        for page in pages {
            let text = fs::read_to_string(&page).expect("a page");
            for command in commands(&text) {
                let words = std::iter::once("webruntime").chain(command.split_whitespace());
                let parsed = Cli::try_parse_from(words);
                assert!(parsed.is_ok(), "{}: {command}: {:?}", page.display(), parsed.err());
                count += 1;
            }
        }
        assert!(count > 8, "only {count} commands");
        assert!(Cli::try_parse_from(["webruntime", "purge-status"]).is_err(), "it is below `admin`");
    }
}
