//! What an operator does, straight on the database.
#![expect(clippy::print_stdout, reason = "these commands answer a person")]

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use domain::plans::Plan;
use uuid::Uuid;

use crate::folder::Folder;
use crate::stack_file::StackFile;

/// An operator's commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the newest accounts
    Accounts {
        /// How many
        #[arg(long, default_value_t = 20)]
        limit: i64,
    },
    /// Put an account on a plan: free, pro or scale
    Plan {
        /// The account's id
        account: Uuid,
        /// The plan
        plan: String,
    },
}

/// Does it, on the system that runs in the folder.
pub(crate) async fn run(folder: Folder, command: Command) -> Result<()> {
    let file = StackFile::read(&folder)?.context("nothing runs here; start it with `up`")?;
    let db = store::connect(&store::Config { url: file.postgres_url, max_connections: 1 })?;
    let mut conn = store::acquire(&db).await?;
    match command {
        Command::Accounts { limit } => {
            println!("{:<36}  {:<5}  made", "account", "plan");
            for (id, plan, created_at) in store::accounts::list_newest(&mut conn, limit).await? {
                println!("{id}  {:<5}  {}", plan.word(), created_at.format("%Y-%m-%d %H:%M"));
            }
        }
        Command::Plan { account, plan } => {
            let Some(plan) = Plan::from_word(&plan) else { bail!("plans are: free, pro, scale") };
            if !store::accounts::update_plan(&mut conn, account, plan).await? {
                bail!("there is no account {account}");
            }
            println!("{account} is on the {} plan.", plan.word());
        }
    }
    Ok(())
}
