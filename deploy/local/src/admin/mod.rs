//! Operator commands, executed directly on the database. Each change publishes its cache invalidations in the same
//! transaction, so that the services follow within a second.
#![expect(clippy::print_stdout, reason = "these commands print their result")]

mod lookup;
mod overview;
mod reseal;

use anyhow::{Context, Result, bail, ensure};
use chrono::{DateTime, Utc};
use clap::Subcommand;
use domain::plans::Plan;
use service::Clock;
use store::{Conn, account_overview, accounts, identities};
use uuid::Uuid;

use crate::folder::Folder;
use crate::stack_file::StackFile;

/// Shown under `admin --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  admin accounts                                 the newest accounts
  admin account quiet-otter-x7k2m                the account with this subdomain
  admin account st_trial_a1B2                    … or with a key of this prefix
  admin account ana@example.com                  … or all accounts of the user with this e-mail address
  admin plan 01990a2b-… pro                      put the account on this plan
  admin suspend 01990a2b-… --reason \"phishing\"   its sites answer 451, its keys 403
  admin resume 01990a2b-…                        end the suspension
  admin reseal-secrets                           re-encrypt stored secrets under a new master key; --help has the steps

Within the cargo workspace: cargo run -- admin accounts. The system must be running in the data directory (--dir).";

/// The operator commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the newest accounts
    Accounts {
        /// Maximum number of accounts
        #[arg(long, default_value_t = 20)]
        limit: i64,
    },
    /// Show an account: plan, standing, usage, names, keys, counts
    Account {
        /// Its id, a current or former subdomain, a custom domain, the prefix of one of its keys, or its owner's e-mail
        /// address
        #[arg(value_name = "ID | SUBDOMAIN | KEY PREFIX | E-MAIL")]
        lookup: String,
    },
    /// Put an account on a plan: free, pro or scale. Existing data over a smaller plan's limits is kept
    Plan {
        /// The account's id
        account: Uuid,
        /// The plan
        plan: String,
    },
    /// Suspend an account: sites, forms and short URLs return 451, keys 403, and visits aren't counted
    Suspend {
        /// The account's id
        account: Uuid,
        /// The reason, shown to operators only
        #[arg(long)]
        reason: Option<String>,
    },
    /// End an account's suspension
    Resume {
        /// The account's id
        account: Uuid,
    },
    /// Re-encrypt every stored secret under the first key of secrets.master_key, while the services run
    #[command(after_help = reseal::STEPS)]
    ResealSecrets {
        /// Only show which keys have sealed what
        #[arg(long)]
        dry_run: bool,
    },
}

/// Executes a command on the running system.
pub(crate) async fn run(folder: Folder, command: Command) -> Result<()> {
    let file = StackFile::read(&folder)?.context("nothing runs in this directory; start it with `up`")?;
    let db = store::connect(&store::Config::new(file.postgres_url, 1))?;
    if let Command::ResealSecrets { dry_run } = command {
        return reseal::run(&folder, &db, dry_run).await;
    }
    let now = Clock::system().now();
    let mut tx = store::begin(&db).await?;
    match command {
        Command::Accounts { limit } => list(&mut tx, limit).await?,
        Command::Account { lookup } => show(&mut tx, &lookup, &file.sites_domain, now).await?,
        Command::Plan { account, plan } => change_plan(&mut tx, account, &plan, now).await?,
        Command::Suspend { account, reason } => {
            let found = accounts::suspend(&mut tx, account, reason.as_deref(), now).await?;
            ensure!(found, "there is no account {account}");
            println!("{account} is suspended: its sites return 451 and its keys 403 within a second.");
            println!("To end the suspension: admin resume {account}");
        }
        Command::Resume { account } => {
            ensure!(accounts::resume(&mut tx, account, now).await?, "there is no account {account}");
            println!("{account} is no longer suspended; it works again within a second.");
        }
        // Runs without a transaction, above.
        Command::ResealSecrets { .. } => {}
    }
    store::commit(tx).await?;
    Ok(())
}

async fn list(conn: &mut Conn, limit: i64) -> Result<()> {
    println!("{:<36}  {:<5}  created", "account", "plan");
    for (id, plan, created_at) in accounts::list_newest(conn, limit).await? {
        println!("{id}  {:<5}  {}", plan.as_str(), created_at.format("%Y-%m-%d %H:%M"));
    }
    Ok(())
}

async fn show(conn: &mut Conn, text: &str, sites_domain: &str, now: DateTime<Utc>) -> Result<()> {
    let lookup = lookup::parse(text, sites_domain);
    match account_overview::find_accounts(conn, &lookup).await?.as_slice() {
        [] => {
            bail!("no account matches `{text}`: use an id, a name, a key's prefix or an e-mail address")
        }
        [account_id] => {
            let overview =
                overview::load(conn, *account_id).await?.context("the account was just deleted")?;
            print!("{}", overview.page(now));
        }
        several => {
            println!("Several accounts match `{text}`; use an id:");
            for account_id in several {
                let holder = identities::find_holder(conn, *account_id).await?;
                println!("{account_id}  {}", overview::holder(holder.as_ref()));
            }
        }
    }
    Ok(())
}

async fn change_plan(conn: &mut Conn, account: Uuid, plan: &str, now: DateTime<Utc>) -> Result<()> {
    let Some(plan) = Plan::parse(plan) else { bail!("plans are: free, pro, scale") };
    ensure!(accounts::update_plan(conn, account, plan).await?, "there is no account {account}");
    accounts::publish_changes(conn, account, now).await?;
    println!("{account} is on the {} plan.", plan.as_str());
    Ok(())
}
