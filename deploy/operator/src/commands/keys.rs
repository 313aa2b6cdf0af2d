//! `webruntime keys`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use domain::encryption::MasterKey;
use domain::peppers::Peppers;
use operations::keys::{ColumnOutcome, KeysInUse, PepperStatus, ResealStep, pepper_status, reseal_all};
use service::config::ExposeSecret as _;

use super::context::Context;

/// Shown under `keys --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  webruntime keys status            which master keys have sealed what, and which peppers API keys need
  webruntime keys rotate master     re-encrypt every stored secret under the first master key
  webruntime keys pepper            the API keys that are still stored under an old pepper";

const STATUS_EXAMPLES: &str = "Examples:
  webruntime keys status
  webruntime keys status --set secrets.master_key_file=/run/secrets/master_key

Needs secrets.master_key and secrets.key_pepper as the services have them. Changes nothing.";

const ROTATE_EXAMPLES: &str = "Examples:
  webruntime keys rotate master              re-encrypt, while the services run
  webruntime keys rotate master --dry-run    only show which keys have sealed what

A rotation of the master key, without downtime:
  1. Make a new key (openssl rand -hex 32) with an id of 1 to 4 letters or digits, here 2027. Append it to secrets.master_key
     everywhere: \"<old key>,2027:<new key>\" (a key without an id has the id 0). Restart the services one by one. Now all of
     them can open what it seals.
  2. Move it to the front: \"2027:<new key>,0:<old key>\". Restart one by one. The first key seals, all of them open.
  3. Run this command. It may be stopped and run again: it continues where it stopped.
  4. When it says that the old key is unused, wait a day, remove that key everywhere, and restart.

After step 4, links that resume a run of an automation and were sent before step 2 no longer work (they live for up to 30 days),
and a call with an Idempotency-Key from before step 2 that is repeated runs again (answers live for a day). Wait that long if it
matters. Keep the old key with the backups of its time: only it opens what they hold.";

const PEPPER_EXAMPLES: &str = "Examples:
  webruntime keys pepper
  webruntime keys pepper --limit 1000

A rotation of the pepper of API keys, without invalidating one:
  1. Append a new pepper (openssl rand -hex 32): secrets.key_pepper = \"<old>,<new>\". Restart the control planes one by one. Now
     all of them know both.
  2. Move it to the front: \"<new>,<old>\". Restart one by one. Keys are valid under both, and each is stored under the new one at
     its next use.
  3. Run this command from time to time. It lists the keys that were not used since, with their accounts.
  4. When none is left that matters, remove the old pepper and restart. The keys on the list stop working then: tell their
     owners first, or let them rotate.";

/// Options of `keys`.
#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show which keys stored values need
    #[command(after_help = STATUS_EXAMPLES)]
    Status,
    /// Replace a key: the master key, unless another one is named
    #[command(after_help = ROTATE_EXAMPLES)]
    Rotate {
        #[command(subcommand)]
        key: Option<Rotate>,
    },
    /// List the API keys that are still stored under an old pepper
    #[command(after_help = PEPPER_EXAMPLES)]
    Pepper {
        /// Maximum number of keys in the list
        #[arg(long, default_value_t = 50)]
        limit: i64,
    },
}

#[derive(Debug, Subcommand)]
enum Rotate {
    /// Re-encrypt every stored secret under the first key of secrets.master_key
    #[command(after_help = ROTATE_EXAMPLES)]
    Master {
        /// Only show which keys have sealed what
        #[arg(long)]
        dry_run: bool,
    },
    /// How to replace the pepper of API keys: nothing needs to run, each key moves at its next use
    #[command(after_help = PEPPER_EXAMPLES)]
    Pepper {
        /// Maximum number of keys in the list
        #[arg(long, default_value_t = 50)]
        limit: i64,
    },
}

/// Executes the command.
pub(crate) async fn run(context: &Context, args: &Keys) -> Result<ExitCode> {
    match &args.command {
        Command::Status => {
            master(context, true).await?;
            println!();
            pepper(context, 0).await?;
        }
        Command::Rotate { key: None } => master(context, false).await?,
        Command::Rotate { key: Some(Rotate::Master { dry_run }) } => master(context, *dry_run).await?,
        Command::Pepper { limit } | Command::Rotate { key: Some(Rotate::Pepper { limit }) } => {
            pepper(context, *limit).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Re-encrypts all secrets. With `dry_run`, only shows which keys have sealed them.
async fn master(context: &Context, dry_run: bool) -> Result<()> {
    let keys = MasterKey::parse(context.settings.secrets.master_key.expose_secret())?;
    println!("{}", KeysInUse::describe_configured(&keys));
    let mut is_complete = true;
    if !dry_run {
        println!("{}", ColumnOutcome::heading());
        let report = |step| match step {
            ResealStep::Progress(text) => eprintln!("{text}"),
            ResealStep::Column(outcome) => println!("{outcome}"),
        };
        is_complete = reseal_all(&context.db, &context.operator(), &keys, report).await?;
        println!();
    }
    let mut conn = store::acquire(&context.db).await?;
    println!("{}", KeysInUse::count(&mut conn).await?.describe(&keys));
    if !is_complete {
        bail!("some secrets were not re-encrypted; the lines above say why");
    }
    Ok(())
}

/// Prints the peppers with the numbers of their keys, and up to `limit` keys that need an old one.
async fn pepper(context: &Context, limit: i64) -> Result<()> {
    let peppers = Peppers::parse(context.settings.secrets.key_pepper.expose_secret())?;
    let mut conn = store::acquire(&context.db).await?;
    let status = pepper_status(&mut conn, &peppers, limit, context.clock.now()).await?;
    println!("{}", describe(&status));
    if limit == 0 {
        return Ok(());
    }
    for key in &status.on_others {
        let used = key.last_used_at.map_or_else(
            || "never used".to_owned(),
            |used| format!("last used {}", used.format("%Y-%m-%d %H:%M UTC")),
        );
        // Owners choose labels: control characters must not reach the terminal.
        let label: String = key.label.chars().flat_map(char::escape_debug).collect();
        println!("{}  {}…  {label}  {used}", key.account_id, key.shown_prefix);
    }
    let more = status.count_on_others() - i64::try_from(status.on_others.len())?;
    if more > 0 {
        println!("and {more} keys more; see --limit");
    }
    Ok(())
}

fn describe(status: &PepperStatus) -> String {
    let mut lines = Vec::new();
    for (index, id) in status.configured.iter().enumerate() {
        let keys =
            status.uses.iter().find(|one| one.pepper_id.as_ref() == Some(id)).map_or(0, |one| one.keys);
        let place = if index == 0 { "new keys get it" } else { "old" };
        lines.push(format!("pepper `{id}` ({place}): {keys} keys"));
    }
    for unknown in &status.uses {
        match &unknown.pepper_id {
            None => lines.push(format!(
                "{} keys were not used since a release without ids of peppers: one of the configured ones",
                unknown.keys
            )),
            Some(id) if !status.configured.contains(id) => lines.push(format!(
                "pepper `{id}`, which is NOT CONFIGURED: {} keys, which are invalid without it",
                unknown.keys
            )),
            Some(_) => {}
        }
    }
    let on_others = status.count_on_others();
    lines.push(match (on_others, status.configured.len()) {
        (0, 1) => "All keys are stored under the configured pepper.".to_owned(),
        (0, _) => "No key needs an old pepper: remove it from secrets.key_pepper and restart.".to_owned(),
        (_, 1) => {
            "They stay valid with the configured pepper if it is the one they were made with.".to_owned()
        }
        _ => format!("{on_others} keys may still need an old pepper; each moves at its next use."),
    });
    lines.join("\n")
}
