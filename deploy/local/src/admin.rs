//! Operator commands of a local run, on its database: arguments and printing. `libs/operations` does the work.
#![expect(clippy::print_stdout, reason = "these commands print their result")]

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use domain::encryption::MasterKey;
use operations::accounts;
use operations::audit::{self, Operator};
use operations::keys::{ColumnOutcome, KeysInUse, ResealStep, reseal_all};
use service::Clock;
use store::Db;
use toml::Table;
use uuid::Uuid;

use crate::folder::Folder;
use crate::progress::Progress;
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
  admin actions                                  what operators changed
  admin reseal-secrets                           re-encrypt stored secrets under a new master key; --help has the steps

Within the cargo workspace: cargo run -- admin accounts. The system must be running in the data directory (--dir).
An installation has the program `webruntime` for this and more.";

/// Shown under `admin reseal-secrets --help`.
const STEPS: &str = "A rotation of the master key:
  1. Put a new key (openssl rand -hex 32) in front, under an id of 1 to 4 letters or digits, and restart. In DIR/secrets.json:
       \"master_key\": \"2027:<new key>,0:<old key>\"
     The first key seals, all of them open. A key without an id has the id 0. If several services restart one after
     another, first append the new key at the end everywhere, and then move it to the front: until a service knows a key,
     it can't open what the others seal with it.
  2. Run admin reseal-secrets. The services may run. It may be stopped and run again: it continues where it stopped.
  3. When it says that the old key is unused, remove that key from secrets.master_key and restart.

After step 3, links that resume a run and were sent before step 1 no longer work (they live for up to 30 days), and a call
with an Idempotency-Key from before step 1 that is repeated runs again (answers live for a day). Wait that long if it matters.

A service that finds secrets of a missing key logs its id and the columns, and says so under master_keys in /readyz.";

/// The operator of a local run, in the log of changes.
const ACTOR: &str = "local";

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
    /// Show what operators changed, newest first
    Actions {
        /// Maximum number of changes
        #[arg(long, default_value_t = 20)]
        limit: i64,
    },
    /// Re-encrypt every stored secret under the first key of secrets.master_key, while the services run
    #[command(after_help = STEPS)]
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
    let operator = Operator { actor: ACTOR.to_owned(), now: Clock::system().now() };
    if let Command::ResealSecrets { dry_run } = command {
        return reseal(&folder, &db, &operator, dry_run).await;
    }
    let mut tx = store::begin(&db).await?;
    let text = match command {
        Command::Accounts { limit } => accounts::list_newest(&mut tx, limit).await?.to_string(),
        Command::Account { lookup } => {
            let found = accounts::find(&mut tx, &lookup, &file.sites_domain).await?;
            found.page(&lookup, operator.now)
        }
        Command::Plan { account, plan } => accounts::change_plan(&mut tx, &operator, account, &plan).await?,
        Command::Suspend { account, reason } => {
            accounts::suspend(&mut tx, &operator, account, reason.as_deref()).await?
        }
        Command::Resume { account } => accounts::resume(&mut tx, &operator, account).await?,
        Command::Actions { limit } => audit::list(&mut tx, None, limit).await?,
        // Runs without a transaction, above.
        Command::ResealSecrets { .. } => String::new(),
    };
    store::commit(tx).await?;
    println!("{}", text.trim_end());
    Ok(())
}

/// Re-encrypts all secrets of the running system. With `dry_run`, only shows which keys have sealed them.
async fn reseal(folder: &Folder, db: &Db, operator: &Operator, dry_run: bool) -> Result<()> {
    let keys = configured_keys(folder)?;
    println!("{}", KeysInUse::describe_configured(&keys));
    let mut is_complete = true;
    if !dry_run {
        println!("{}", ColumnOutcome::heading());
        let progress = Progress::new();
        let report = |step| match step {
            ResealStep::Progress(text) => progress.step(text),
            ResealStep::Column(outcome) => println!("{outcome}"),
        };
        is_complete = reseal_all(db, operator, &keys, report).await?;
        progress.done();
    }
    let mut conn = store::acquire(db).await?;
    println!("\n{}", KeysInUse::count(&mut conn).await?.describe(&keys));
    if !is_complete {
        bail!("some secrets were not re-encrypted; the lines above say why");
    }
    Ok(())
}

/// Returns the keys of the running services.
fn configured_keys(folder: &Folder) -> Result<MasterKey> {
    let path = folder.part("settings/control-plane.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let settings: Table = toml::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    let setting = settings.get("secrets").and_then(|secrets| secrets.get("master_key")?.as_str());
    Ok(MasterKey::parse(setting.unwrap_or_default())?)
}
