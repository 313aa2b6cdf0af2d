//! `webruntime admin`.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Subcommand};
use domain::peppers::Peppers;
use operations::accounts::{self, NewAccount};
use operations::audit;
use service::config::ExposeSecret as _;
use uuid::Uuid;

use super::context::Context;
use super::key_output::KeyOutput;

/// Shown under `admin --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  webruntime admin create-account --email ana@example.com   an account with a key, such as the first one
  webruntime admin accounts                                 the newest accounts
  webruntime admin account quiet-otter-x7k2m                the account with this subdomain …
  webruntime admin account st_live_a1B2                     … with a key of this prefix …
  webruntime admin account ana@example.com                  … or all accounts of this owner
  webruntime admin plan 01990a2b-… pro                      put the account on this plan
  webruntime admin suspend 01990a2b-… --reason phishing     after a question: its sites answer 451, its keys 403
  webruntime admin resume 01990a2b-…                        end the suspension
  webruntime admin purge-status                             what is still to be deleted of deleted accounts
  webruntime admin actions                                  who changed what with this program

Services follow a change within a second. Every change is in `admin actions`.";

const CREATE_EXAMPLES: &str = "Examples:
  webruntime admin create-account --email ana@example.com
  webruntime admin create-account --email ana@example.com --plan scale --key-label deploys
  webruntime admin create-account --email ana@example.com --key-file ana.key

The key has all permissions on the account and is shown once: store it at once. --key-file writes it into a new file that its
owner alone may read. Where standard output is not a terminal, as in a job of a container, its output may be logged: there the
command needs --key-file or --print-key. The owner's address gets the account's mails.
An account of this kind is for the API. People who sign in through a provider get an account of their own, or claim a trial.";

const LIST_EXAMPLES: &str = "Examples:
  webruntime admin accounts
  webruntime admin accounts --limit 100";

const SHOW_EXAMPLES: &str = "Examples:
  webruntime admin account 01990a2b-…              by id
  webruntime admin account https://shop.example/   by a custom domain, a subdomain, or the address of a page
  webruntime admin account st_live_a1B2            by the beginning of a key; of a whole key only this is used
  webruntime admin account ana@example.com         by the owner's address

Shows one screen without secrets and without data of visitors, for a ticket.";

const PLAN_EXAMPLES: &str = "Examples:
  webruntime admin plan 01990a2b-… pro
  webruntime admin plan 01990a2b-… free --actor billing

Existing data over a smaller plan's limits is kept.";

const SUSPEND_EXAMPLES: &str = "Examples:
  webruntime admin suspend 01990a2b-… --reason phishing          asks first
  webruntime admin suspend 01990a2b-… --reason phishing --yes    … or not
  webruntime admin resume 01990a2b-…

Sites, forms and short URLs answer 451, keys 403, and visits aren't counted. Nothing is deleted but previews and the files of
replaced deploys, which `resume` does not bring back. A second suspension keeps the time of the first one and takes the new reason.";

const RESUME_EXAMPLES: &str = "Examples:
  webruntime admin resume 01990a2b-…";

const PURGE_EXAMPLES: &str = "Examples:
  webruntime admin purge-status                          over all accounts
  webruntime admin purge-status --account 01990a2b-…     is everything of this one gone? All zeros: yes

A deleted account's events and files are deleted twice, hours apart, because something may have been under way the first time.
Rows that are due for long mean that the job-runners, ClickHouse or the blob store are in trouble.";

const ACTIONS_EXAMPLES: &str = "Examples:
  webruntime admin actions
  webruntime admin actions --target 01990a2b-…   of one account or webhook

Each line has the time, the operator, the command, its target and details. Secrets are never in it. What takes several
transactions, as `migrate`, has a line when it begins and one when it ends. `images pin` and `secrets create` have no line: they
change files.";

/// Options of `admin`.
#[derive(Debug, Args)]
pub(crate) struct Admin {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the newest accounts
    #[command(after_help = LIST_EXAMPLES)]
    Accounts {
        /// Maximum number of accounts
        #[arg(long, default_value_t = 20)]
        limit: i64,
    },
    /// Show an account: plan, standing, usage, names, keys, counts
    #[command(after_help = SHOW_EXAMPLES)]
    Account {
        /// Its id, a current or former subdomain, a custom domain, the prefix of one of its keys, or its owner's e-mail
        /// address
        #[arg(value_name = "ID | SUBDOMAIN | KEY PREFIX | E-MAIL")]
        lookup: String,
    },
    /// Create an account and its first API key, which is shown once
    #[command(after_help = CREATE_EXAMPLES)]
    CreateAccount {
        /// The owner's address, for mails
        #[arg(long)]
        email: String,
        /// The plan: free, pro or scale
        #[arg(long, default_value = "free")]
        plan: String,
        /// The key's label
        #[arg(long, default_value = "first key")]
        key_label: String,
        /// Write the key into this new file, for its owner alone
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
        /// Print the key although standard output is not a terminal
        #[arg(long, conflicts_with = "key_file")]
        print_key: bool,
    },
    /// Put an account on a plan: free, pro or scale
    #[command(after_help = PLAN_EXAMPLES)]
    Plan {
        /// The account's id
        account: Uuid,
        /// The plan
        plan: String,
    },
    /// Suspend an account
    #[command(after_help = SUSPEND_EXAMPLES)]
    Suspend {
        /// The account's id
        account: Uuid,
        /// The reason, shown to operators only
        #[arg(long)]
        reason: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// End an account's suspension
    #[command(after_help = RESUME_EXAMPLES)]
    Resume {
        /// The account's id
        account: Uuid,
    },
    /// Show what is still to be deleted of deleted accounts and sites
    #[command(after_help = PURGE_EXAMPLES)]
    PurgeStatus {
        /// Only of this account, which may be deleted
        #[arg(long, value_name = "ID")]
        account: Option<Uuid>,
    },
    /// Show what operators changed, newest first
    #[command(after_help = ACTIONS_EXAMPLES)]
    Actions {
        /// Maximum number of changes
        #[arg(long, default_value_t = 20)]
        limit: i64,
        /// Only about this account or webhook
        #[arg(long, value_name = "ID")]
        target: Option<String>,
    },
}

/// Executes the command.
pub(crate) async fn run(context: &Context, args: &Admin) -> Result<ExitCode> {
    let operator = context.operator();
    if let Command::Suspend { account, yes: false, .. } = &args.command
        && !confirm_suspension(*account)?
    {
        println!("Nothing was changed.");
        return Ok(ExitCode::FAILURE);
    }
    let mut key_output = KeyOutput::Printed;
    let mut tx = store::begin(&context.db).await.context("connecting to Postgres")?;
    let text = match &args.command {
        Command::Accounts { limit } => accounts::list_newest(&mut tx, *limit).await?.to_string(),
        Command::Account { lookup } => {
            let found = accounts::find(&mut tx, lookup, &context.settings.http.sites_domain).await?;
            found.page(lookup, operator.now)
        }
        Command::CreateAccount { email, plan, key_label, key_file, print_key } => {
            key_output = KeyOutput::new(key_file.as_deref(), *print_key)?;
            let peppers = Peppers::parse(context.settings.secrets.key_pepper.expose_secret())?;
            let new = NewAccount { email, plan, key_label };
            let created = accounts::create_account(&mut tx, &operator, &context.rng, &peppers, &new).await?;
            let key = key_output.write(&created.key)?;
            format!("account    {}\nsubdomain  {}\n{key}", created.id, created.subdomain)
        }
        Command::Plan { account, plan } => accounts::change_plan(&mut tx, &operator, *account, plan).await?,
        Command::Suspend { account, reason, .. } => {
            accounts::suspend(&mut tx, &operator, *account, reason.as_deref()).await?
        }
        Command::Resume { account } => accounts::resume(&mut tx, &operator, *account).await?,
        Command::PurgeStatus { account } => accounts::purge_status(&mut tx, *account, operator.now).await?,
        Command::Actions { limit, target } => audit::list(&mut tx, target.as_deref(), *limit).await?,
    };
    // What is printed has happened.
    store::commit(tx).await?;
    key_output.keep();
    println!("{}", text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// Asks the operator, because a part of the suspension can't be undone.
fn confirm_suspension(account: Uuid) -> Result<bool> {
    let loss = format!(
        "suspending {account} deletes its previews and the files of replaced deploys, which `resume` does not bring back"
    );
    ensure!(io::stdin().is_terminal(), "{loss}: add --yes to do it");
    eprintln!("{loss}. Type yes to suspend it:");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}
