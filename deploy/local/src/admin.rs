//! What an operator does, straight on the database. What services remember is told in the same transaction, so
//! that they follow within a second.
#![expect(clippy::print_stdout, reason = "these commands answer a person")]

mod lookup;
mod overview;

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
  admin account quiet-otter-x7k2m                everything about the account that has this subdomain
  admin account st_trial_a1B2                    … or a key that begins so
  admin account ana@example.com                  … or all of whoever signs in with this e-mail
  admin plan 01990a2b-… pro                      what it may use, from now on
  admin suspend 01990a2b-… --reason \"phishing\"   its sites answer 451, its keys 403
  admin resume 01990a2b-…                        as if nothing had happened

Within the cargo workspace: cargo run -- admin accounts. The system must run in the folder (--dir).";

/// An operator's commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the newest accounts
    Accounts {
        /// How many
        #[arg(long, default_value_t = 20)]
        limit: i64,
    },
    /// Show all there is to know about an account: plan, standing, usage, names, keys, counts
    Account {
        /// Its id, a subdomain (also one it gave up), a custom domain, the beginning of one of its keys, or its
        /// holder's e-mail
        #[arg(value_name = "ID | SUBDOMAIN | KEY PREFIX | E-MAIL")]
        sought: String,
    },
    /// Put an account on a plan: free, pro or scale. What is over a smaller plan's limits stays
    Plan {
        /// The account's id
        account: Uuid,
        /// The plan
        plan: String,
    },
    /// Suspend an account: sites, forms and short addresses answer 451, keys 403, visits aren't counted
    Suspend {
        /// The account's id
        account: Uuid,
        /// Why, for the next operator who looks; not shown to anybody else
        #[arg(long)]
        reason: Option<String>,
    },
    /// End an account's suspension
    Resume {
        /// The account's id
        account: Uuid,
    },
}

/// Does it, on the system that runs in the folder.
pub(crate) async fn run(folder: Folder, command: Command) -> Result<()> {
    let file = StackFile::read(&folder)?.context("nothing runs here; start it with `up`")?;
    let db = store::connect(&store::Config { url: file.postgres_url, max_connections: 1 })?;
    let now = Clock::system().now();
    let mut tx = store::begin(&db).await?;
    match command {
        Command::Accounts { limit } => list(&mut tx, limit).await?,
        Command::Account { sought } => show(&mut tx, &sought, &file.sites_domain, now).await?,
        Command::Plan { account, plan } => change_plan(&mut tx, account, &plan, now).await?,
        Command::Suspend { account, reason } => {
            let found = accounts::suspend(&mut tx, account, reason.as_deref(), now).await?;
            ensure!(found, "there is no account {account}");
            println!("{account} is suspended: its sites answer 451 and its keys 403 within a second.");
            println!("To end that: admin resume {account}");
        }
        Command::Resume { account } => {
            ensure!(accounts::resume(&mut tx, account, now).await?, "there is no account {account}");
            println!("{account} is not suspended; everything of it works again within a second.");
        }
    }
    store::commit(tx).await?;
    Ok(())
}

async fn list(conn: &mut Conn, limit: i64) -> Result<()> {
    println!("{:<36}  {:<5}  made", "account", "plan");
    for (id, plan, created_at) in accounts::list_newest(conn, limit).await? {
        println!("{id}  {:<5}  {}", plan.as_str(), created_at.format("%Y-%m-%d %H:%M"));
    }
    Ok(())
}

async fn show(conn: &mut Conn, word: &str, sites_domain: &str, now: DateTime<Utc>) -> Result<()> {
    let sought = lookup::parse(word, sites_domain);
    match account_overview::find_accounts(conn, &sought).await?.as_slice() {
        [] => {
            bail!("no account answers to `{word}`: give an id, a name, a key's beginning or an e-mail")
        }
        [account_id] => {
            let overview = overview::load(conn, *account_id).await?.context("it has just ended")?;
            print!("{}", overview.page(now));
        }
        several => {
            println!("Several accounts answer to `{word}`; ask again with an id:");
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
