//! Accounts: looked up, created, put on a plan, suspended and resumed. Each change publishes its cache invalidations in the same
//! transaction, so that the services follow within a second.

mod account_lookup;
mod changes;
mod lists;
mod new_account;
mod overview;

pub use changes::{change_plan, resume, suspend};
pub use lists::{AccountList, Found, find, list_newest, purge_status};
pub use new_account::{CreatedAccount, NewAccount, create_account};
pub use overview::Overview;
